package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// row is one job and its checkpoints.
type row struct {
	name     string
	interval time.Duration
	rate     int           // records per second
	sleep    time.Duration // of a counter over each record
	set      map[string]string
	weighed  bool // bare writes of as many bytes are wanted

	job     weir.JobID
	taken   map[weir.CheckpointID]rpc.CheckpointInfo
	bytes   int64 // of the last checkpoint
	bare    []bareWrite
	samples []sample
}

// bareWrite is a write of as many bytes as the row's last checkpoint had.
type bareWrite struct {
	at   time.Time
	took time.Duration
}

// Keys of options.
const (
	keyInterval       = "execution.checkpointing.interval"
	keyRetained       = "execution.checkpointing.num-retained"
	keyUnaligned      = "execution.checkpointing.unaligned.enabled"
	keyAlignedTimeout = "execution.checkpointing.aligned-checkpoint-timeout"
	keyExclusive      = "taskmanager.network.memory.buffers-per-channel"
	keyFloating       = "taskmanager.network.memory.floating-buffers-per-gate"
	keyQueued         = "taskmanager.network.memory.max-buffers-per-channel"
)

// alignedTimeout is the age at which barriers of the row with a timeout overtake.
const alignedTimeout = time.Second

// backPressure are the demo's jobs: one without back pressure, unaligned ones of two
// paces, one that aligns and one that does so for a second.
func backPressure() *phase {
	const often = 450 * time.Millisecond
	unaligned := map[string]string{keyUnaligned: "true"}
	// So long that the intervals of what takes one or two milliseconds are narrow.
	return &phase{lasts: 108 * time.Second, rows: []*row{
		{name: "free", interval: often, rate: 2000, weighed: true},
		{name: "unaligned-5ms", interval: often, rate: 2000, sleep: 5 * time.Millisecond, set: unaligned, weighed: true},
		{name: "unaligned-50ms", interval: often, rate: 2000, sleep: 50 * time.Millisecond, set: unaligned, weighed: true},
		{name: "aligned", interval: time.Second, rate: 2000, sleep: 5 * time.Millisecond},
		{
			name: "timeout", interval: 1500 * time.Millisecond, rate: 2000, sleep: 5 * time.Millisecond,
			set: map[string]string{keyUnaligned: "true", keyAlignedTimeout: alignedTimeout.String()},
		},
	}}
}

// tenfold are an unaligned job, and one with ten times the buffers.
func tenfold() *phase {
	const often = 250 * time.Millisecond
	return &phase{lasts: 32 * time.Second, rows: []*row{
		{name: "once", interval: often, rate: 40_000, sleep: 5 * time.Millisecond, set: map[string]string{keyUnaligned: "true"}},
		{
			name: "tenfold", interval: often, rate: 40_000, sleep: 5 * time.Millisecond, weighed: true,
			set: map[string]string{keyUnaligned: "true", keyExclusive: "20", keyFloating: "80", keyQueued: "100"},
		},
	}}
}

func (r *row) params() map[string]string {
	return map[string]string{"rate": fmt.Sprint(r.rate), "sleep": r.sleep.String()}
}

func (r *row) options() map[string]string {
	o := map[string]string{keyInterval: r.interval.String(), keyRetained: "1000"}
	maps.Copy(o, r.set)
	return o
}

// files is how many files of its size at once a checkpoint has: in-flight data of each
// TaskManager, or only metadata.
func (r *row) files() int {
	if r.set[keyUnaligned] == "" {
		return 1
	}
	return managers
}

// look asks for new checkpoints.
func (r *row) look(ctx context.Context, c *cluster) error {
	l, err := c.Client.Checkpoints(ctx, r.job.String())
	if err != nil {
		return err
	}
	if r.taken == nil {
		r.taken = map[weir.CheckpointID]rpc.CheckpointInfo{}
	}
	for _, i := range l.Recent {
		switch {
		case i.Status == rpc.CheckpointFailed:
			return fmt.Errorf("checkpoint %d of %s failed: %s: %s", i.ID, r.name, i.Reason, i.Message)
		case i.Status == rpc.CheckpointCompleted && len(i.Subtasks) > 0: // older ones have no statistics
			r.taken[i.ID] = i
			if i.ID == l.Recent[0].ID {
				r.bytes = i.Bytes
			}
		}
	}
	return nil
}

// evaluate evaluates the row's checkpoints, oldest first, without those at which its
// queue was not full yet.
func (r *row) evaluate(ctx context.Context, c *cluster) (all []sample, err error) {
	var traces [managers][]span
	for i := range traces {
		if traces[i], err = readTrace(c.traces, r.name, i); err != nil {
			return nil, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.taken)) {
		s := sampleOf(r.taken[id], traces)
		dir := snapshotmeta.JobDir(r.job) + "/" + snapshotmeta.Dir(id)
		if s.inFlight, err = checkpointdemo.ReadInFlight(ctx, c.store, dir); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		all = append(all, s)
	}
	return full(all), nil
}

// full leaves out the first checkpoint and those up to the first that has nearly as much
// in flight as the middle one of all.
func full(all []sample) []sample {
	if len(all) == 0 {
		return nil
	}
	var sizes []int64
	for _, s := range all {
		sizes = append(sizes, s.inFlight.Bytes)
	}
	enough := median(sizes) * 9 / 10
	first := slices.IndexFunc(all, func(s sample) bool { return s.inFlight.Bytes >= enough })
	return all[max(first, 1):]
}

func (r *row) writes() (all []time.Duration) {
	for _, w := range r.bare {
		all = append(all, w.took)
	}
	return all
}

// nearest is the bare write that was done nearest to a time.
func (r *row) nearest(at time.Time) time.Duration {
	return slices.MinFunc(r.bare, func(a, b bareWrite) int {
		return cmp.Compare(a.at.Sub(at).Abs(), b.at.Sub(at).Abs())
	}).took
}

// median is the middle of values, which are not none.
func median[T ~int64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
