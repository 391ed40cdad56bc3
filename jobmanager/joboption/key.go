package joboption

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// debloat is what keys of buffer debloating begin with.
const debloat = "taskmanager.network.memory.buffer-debloat."

// Key describes one option.
type Key struct {
	Name    string
	Type    string // "duration", "size", "int", "bool", or the words that are allowed
	Default string // as a user would write it; in brackets if it is a rule
	Help    string
	// set decodes a value into its place.
	set func(s *Settings, value string) error
}

// own are the keys that are decoded here, sorted by name.
var own = slices.Concat(general, recovery, network)

var general = []Key{
	{"execution.buffer-timeout.interval", "duration", "100ms",
		"How long records may wait in a buffer that is not full before it is sent. 0: each record is sent at once.",
		duration(0, time.Hour, func(s *Settings) *time.Duration { return &s.Task.BufferTimeout })},
	{"execution.checkpointing.unaligned.channel-state-memory", "size", "64mb",
		"How much in-flight data the subtasks that share a channel-state file may hold in memory while it is written. A checkpoint that would need more fails.",
		size(32<<10, 64<<30, func(s *Settings) *int64 { return &s.Task.ChannelStateMemory })},
	{"parallelism.default", "int", "1",
		"Parallelism of operators that name none.",
		integer(1, weir.MaxMaxParallelism, func(s *Settings) *int { return &s.Parallelism })},
	{"pipeline.max-parallelism", "int", "[derived]",
		"Number of key groups of operators that name none, and the largest parallelism they can have later. By default at least 128, and about one and a half times the parallelism.",
		integer(1, weir.MaxMaxParallelism, func(s *Settings) *int { return &s.MaxParallelism })},
	{"pipeline.operator-chaining.enabled", "bool", "true",
		"Whether operators are fused into one task where that is possible.",
		boolean(func(s *Settings) *bool { return &s.Chaining })},
	{"slot.request.timeout", "duration", "5min",
		"How long the job waits for free slots before it fails.",
		duration(time.Millisecond, 365*24*time.Hour, func(s *Settings) *time.Duration { return &s.SlotTimeout })},
	{"state.backend.type", "heap", "heap",
		"Where keyed state is kept while the job runs.",
		word(func(s *Settings) *string { return &s.Task.StateBackend }, "heap")},
}

// network are the keys of buffers.
var network = []Key{
	{debloat + "enabled", "bool", "false",
		"Whether buffers are filled only so far that what is in flight can be consumed in the target time.",
		boolean(func(s *Settings) *bool { return &s.Task.Debloat.Enabled })},
	{debloat + "period", "duration", "200ms",
		"With debloating: time between two calculations.",
		duration(time.Millisecond, time.Hour, func(s *Settings) *time.Duration { return &s.Task.Debloat.Period })},
	{debloat + "samples", "int", "20",
		"With debloating: number of calculations that are averaged.",
		integer(1, 1000, func(s *Settings) *int { return &s.Task.Debloat.Samples })},
	{debloat + "target", "duration", "1s",
		"With debloating: the time in which a task should be able to consume what is in flight to it.",
		duration(time.Millisecond, time.Hour, func(s *Settings) *time.Duration { return &s.Task.Debloat.Target })},
	{debloat + "threshold-percentages", "int", "25",
		"With debloating: least change of the buffer size, in percent, that is announced to producers.",
		integer(0, 100, func(s *Settings) *int { return &s.Task.Debloat.Threshold })},
	{"taskmanager.network.memory.buffers-per-channel", "int", "2",
		"Buffers of 32 KiB that each input channel from another process owns. With 0 all share the floating ones.",
		integer(0, 1024, func(s *Settings) *int { return &s.Task.ExclusiveBuffers })},
	{"taskmanager.network.memory.floating-buffers-per-gate", "int", "8",
		"Buffers that the channels of one input share besides.",
		integer(1, 65536, func(s *Settings) *int { return &s.Task.FloatingBuffers })},
	{"taskmanager.network.memory.max-buffers-per-channel", "int", "10",
		"Buffers that may be queued for one output channel before the task waits.",
		integer(1, 65536, func(s *Settings) *int { return &s.Task.BuffersPerOutput })},
	{"taskmanager.network.memory.max-overdraft-buffers-per-gate", "int", "5",
		"Buffers that a task may take beyond its pool to finish a record.",
		integer(0, 65536, func(s *Settings) *int { return &s.Task.OverdraftBuffers })},
}

func duration(least, most time.Duration, field func(*Settings) *time.Duration) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		d, err := ParseDuration(value)
		if err != nil {
			return err
		}
		if d < least || d > most {
			return fmt.Errorf("%s is not between %s and %s", d, least, most)
		}
		*field(s) = d
		return nil
	}
}

func size(least, most int64, field func(*Settings) *int64) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		n, err := ParseSize(value)
		if err != nil {
			return err
		}
		if n < least || n > most {
			return fmt.Errorf("%d bytes is not between %d and %d", n, least, most)
		}
		*field(s) = n
		return nil
	}
}

func integer(least, most int, field func(*Settings) *int) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		n, err := parseInt(value)
		if err != nil {
			return err
		}
		if n < least || n > most {
			return fmt.Errorf("%d is not between %d and %d", n, least, most)
		}
		*field(s) = n
		return nil
	}
}

func boolean(field func(*Settings) *bool) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		b, err := parseBool(value)
		if err == nil {
			*field(s) = b
		}
		return err
	}
}

func word(field func(*Settings) *string, allowed ...string) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		for _, w := range allowed {
			if value == w {
				*field(s) = w
				return nil
			}
		}
		return fmt.Errorf("%q is none of %q", value, allowed)
	}
}

// delegated are the keys that checkpointing and failover decode, sorted by name.
var delegated = []Key{
	{Name: "execution.checkpointing.aligned-checkpoint-timeout", Type: "duration", Default: "0ms",
		Help: "With unaligned checkpoints: how old a barrier becomes before it overtakes data. 0: barriers overtake from the start."},
	{Name: "execution.checkpointing.checkpoints-after-tasks-finish", Type: "bool", Default: "true",
		Help: "Whether checkpoints go on when some tasks have finished, and tasks that have reached the end of their data wait for one that covers it."},
	{Name: "execution.checkpointing.data-inline-threshold", Type: "size", Default: "20kb",
		Help: "State up to this size lies in the metadata file and needs no file of its own. At most 1mb."},
	{Name: "execution.checkpointing.externalized-checkpoint-retention", Type: "RETAIN_ON_CANCELLATION, DELETE_ON_CANCELLATION, NO_EXTERNALIZED_CHECKPOINTS", Default: "RETAIN_ON_CANCELLATION",
		Help: "What becomes of the completed checkpoints when the job ends: they stay; they stay only if it failed; they are deleted. Savepoints always stay."},
	{Name: "execution.checkpointing.interval", Type: "duration", Default: "[none]",
		Help: "Time between checkpoints, at least 10ms. Without it there are none, and a restarted job begins anew. `weir checkpoint interval` changes it while the job runs."},
	{Name: "execution.checkpointing.interval-during-backlog", Type: "duration", Default: "[as interval]",
		Help: "Time between checkpoints while a source works off a backlog; 0: none meanwhile."},
	{Name: "execution.checkpointing.max-concurrent-checkpoints", Type: "int", Default: "1",
		Help: "How many checkpoints may be pending at a time, up to 100. More than 1 contradicts unaligned checkpoints. Savepoints do not wait for it, unless checkpoints are unaligned."},
	{Name: "execution.checkpointing.min-pause", Type: "duration", Default: "0s",
		Help: "Least time between the end of a checkpoint and the start of the next periodic one."},
	{Name: "execution.checkpointing.mode", Type: "EXACTLY_ONCE, AT_LEAST_ONCE", Default: "EXACTLY_ONCE",
		Help: "Whether each record counts once after a restart, or may count twice because barriers hold no input back."},
	{Name: "execution.checkpointing.num-retained", Type: "int", Default: "2",
		Help: "How many completed checkpoints are kept; older ones are deleted."},
	{Name: "execution.checkpointing.savepoint-dir", Type: "string", Default: "[the cluster's]",
		Help: "Where savepoints of the job go that name no directory: below the JobManager's `--savepoint-dir`, absolute or relative to it."},
	{Name: "execution.checkpointing.timeout", Type: "duration", Default: "10min",
		Help: "After this time a checkpoint that is not complete is given up."},
	{Name: "execution.checkpointing.tolerable-failed-checkpoints", Type: "int", Default: "[no limit]",
		Help: "How many checkpoints in a row may fail before the job is failed, and restarted from the last complete one. Each failure raises an alarm in the log."},
	{Name: "execution.checkpointing.unaligned.enabled", Type: "bool", Default: "false",
		Help: "Whether barriers of checkpoints overtake data, which then is part of the checkpoint. Needs EXACTLY_ONCE. Pointwise, broadcast and user-partitioned edges, and other edges into the same task, align all the same; so do savepoints."},
	{Name: "execution.checkpointing.unaligned.forced", Type: "bool", Default: "false",
		Help: "Accepted and without effect: it is for graphs with loops, and there are none."},
	{Name: "execution.checkpointing.unaligned.interruptible-timers.enabled", Type: "bool", Default: "true",
		Help: "Accepted and without effect: firing timers always give way to a barrier."},
	{Name: "execution.checkpointing.unaligned.max-subtasks-per-channel-state-file", Type: "int", Default: "5",
		Help: "How many subtasks of a job in one process share a file of in-flight data."},
	{Name: "restart-strategy.failure-rate.delay", Type: "duration", Default: "1s",
		Help: "With failure-rate: how long to wait between a failure and the restart."},
	{Name: "restart-strategy.failure-rate.failure-rate-interval", Type: "duration", Default: "1min",
		Help: "With failure-rate: the time over which failures are counted."},
	{Name: "restart-strategy.failure-rate.max-failures-per-interval", Type: "int", Default: "1",
		Help: "With failure-rate: how many failures within that time the job survives."},
	{Name: "restart-strategy.fixed-delay.attempts", Type: "int", Default: "2147483647",
		Help: "With fixed-delay: how often the job is restarted before it fails for good."},
	{Name: "restart-strategy.fixed-delay.delay", Type: "duration", Default: "1s",
		Help: "With fixed-delay: how long to wait between a failure and the restart."},
	{Name: "restart-strategy.type", Type: "none, fixed-delay, failure-rate", Default: "[fixed-delay if execution.checkpointing.interval is set, else none]",
		Help: "What happens when a task fails: the job fails, or is restarted from its last completed checkpoint."},
}

// Row is the key's line in docs/config.md.
func Row(k Key) string {
	return fmt.Sprintf("| `%s` | %s | %s | %s |", k.Name, k.Type, k.Default, k.Help)
}
