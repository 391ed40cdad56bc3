package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// pace is how long the demo's consumer takes for a record.
type pace uint8

const (
	unhindered pace = iota // as fast as it can
	slow                   // --sleep for each
	slowish                // a fifth of that
)

// sleep is the time per record if a slow one takes d.
func (p pace) sleep(d time.Duration) time.Duration {
	switch p {
	case slow:
		return d
	case slowish:
		return d / 5
	default:
		return 0
	}
}

// demoMode is one row of the demo.
type demoMode struct {
	name string
	pace pace
	// options are the job options that make the mode.
	options map[string]string
	// waits says that its barriers wait behind what is queued, so that the queue predicts
	// the duration.
	waits bool
	// flink are the durations that Flink 2.3.0 showed on a laptop in this row of its
	// checkpoint experiment, and flinkSizes the sizes; empty where none were published.
	flink      []time.Duration
	flinkSizes []string
}

// alignedTimeout is the age at which barriers switch in aligned-timeout-backpressure.
const alignedTimeout = time.Second

// Keys of options that the modes set.
const (
	keyInterval       = "execution.checkpointing.interval"
	keyUnaligned      = "execution.checkpointing.unaligned.enabled"
	keyAlignedTimeout = "execution.checkpointing.aligned-checkpoint-timeout"
	keyDebloat        = "taskmanager.network.memory.buffer-debloat.enabled"
)

// demoModes are the rows in the order in which they run and are printed.
var demoModes = []demoMode{
	{
		name:  "aligned",
		flink: milliseconds(41, 17, 20, 19, 16, 16), flinkSizes: sixTimes("5.7 KB"),
	},
	{
		name: "aligned-backpressure", pace: slow, waits: true,
		flink: milliseconds(359, 3029, 3861, 3877, 3907, 3903), flinkSizes: sixTimes("5.7 KB"),
	},
	{
		name: "unaligned-backpressure", pace: slow,
		options: map[string]string{keyUnaligned: "true"},
		flink:   milliseconds(43, 26, 22, 26, 17, 21), flinkSizes: []string{"91 KB", "694 KB", "688 KB", "590 KB", "614 KB", "625 KB"},
	},
	{
		name: "aligned-timeout-backpressure", pace: slow,
		options: map[string]string{keyUnaligned: "true", keyAlignedTimeout: alignedTimeout.String()},
	},
	{name: "aligned-faster-sink", pace: slowish, waits: true},
	{name: "aligned-backpressure-debloat", pace: slow, waits: true, options: map[string]string{keyDebloat: "true"}},
}

func sixTimes(s string) []string { return slices.Repeat([]string{s}, 6) }

func milliseconds(ms ...int) (out []time.Duration) {
	for _, m := range ms {
		out = append(out, time.Duration(m)*time.Millisecond)
	}
	return out
}

// demoModeNames lists the modes.
func demoModeNames() string {
	var names []string
	for _, m := range demoModes {
		names = append(names, m.name)
	}
	return strings.Join(names, ", ")
}

// selectModes finds modes by name, in the order of the table; no name stands for all.
func selectModes(names []string) ([]*demoMode, error) {
	var out []*demoMode
	for i := range demoModes {
		if len(names) == 0 || slices.Contains(names, demoModes[i].name) {
			out = append(out, &demoModes[i])
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(demoModes, func(m demoMode) bool { return m.name == name }) {
			return nil, usageError{fmt.Errorf("unknown mode %q: want one of %s", name, demoModeNames())}
		}
	}
	return out, nil
}
