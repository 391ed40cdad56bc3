package netstack

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/partition"
)

// Location is where an attempt runs.
type Location struct {
	TaskManager weir.TaskManagerID
	Incarnation weir.Incarnation
	Address     string // where its Stack can be dialled
}

// TaskSpec says which channels a task has.
type TaskSpec struct {
	Attempt weir.AttemptID
	Outputs []OutputSpec
	Inputs  []InputSpec
	Buffers BufferOptions
	// Wake is called when an input has something, or an output is available again,
	// after the task had found none. It is called from any goroutine and must not wait.
	Wake func()
	// Urgent is called likewise whenever an input got a priority item, whatever the task
	// had found; nil: Wake is called instead.
	Urgent func()
	// Exceeds says whether an output that waits in the middle of a record may have memory
	// beyond all bounds of its pool, so that the task comes to the record's end; nil: never.
	// It is asked when the output begins to wait, and after each [TaskIO.Hasten], from the
	// task's goroutine.
	Exceeds func() bool
	// Decided is called when an output, by its index, will capture no more for a
	// timeoutable barrier; see [partition.Options]. It may come after Close.
	Decided func(output int, id weir.CheckpointID)
}

// OutputSpec is one result partition.
type OutputSpec struct {
	Edge           int // index in the job graph
	Partitioning   partition.Partitioning
	MaxParallelism int        // of the consumer, for Hash
	Consumers      []Consumer // one per subpartition
	Aligns         bool       // no barrier overtakes on this edge (behaviour §17)
}

// Consumer is who reads a subpartition.
type Consumer struct {
	Attempt weir.AttemptID
	At      Location
}

// InputSpec is one input gate.
type InputSpec struct {
	Edge     int
	Channels []ChannelSpec
}

// ChannelSpec is one channel of a gate: a subpartition of a producer.
type ChannelSpec struct {
	Producer     weir.AttemptID
	Subpartition int
	At           Location
}

// BufferOptions say how many segments a task may use.
type BufferOptions struct {
	Timeout   time.Duration // publish at least that often; 0: after every record; < 0: never for its own sake
	Exclusive int           // per remote channel
	Floating  int           // per gate with remote channels, at least 1
	PerOutput int           // soft limit of segments per subpartition, at least 1
	Overdraft int           // per partition beyond that, to end a record that was begun
}

// DefaultBuffers are the options that a job gets if it does not say otherwise.
func DefaultBuffers() BufferOptions {
	return BufferOptions{Timeout: 100 * time.Millisecond, Exclusive: 2, Floating: 8, PerOutput: 10, Overdraft: 5}
}

// validate says everything that is wrong with the spec.
func (t *TaskSpec) validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format+": %w", append(args, ErrBadSpec)...))
	}
	if b := t.Buffers; b.Exclusive < 0 || b.Floating < 1 || b.PerOutput < 1 || b.Overdraft < 0 {
		fault("buffers %+v", b)
	}
	for i, o := range t.Outputs {
		switch n := len(o.Consumers); {
		case n < 1 || n > math.MaxUint16 || (o.Partitioning == partition.Forward && n != 1):
			fault("output %d, %s: %d consumers", i, o.Partitioning, n)
		case o.Partitioning == partition.Hash && (o.MaxParallelism < n || o.MaxParallelism > weir.MaxMaxParallelism):
			fault("output %d: maximum parallelism %d of %d consumers", i, o.MaxParallelism, n)
		case o.Partitioning > partition.Custom:
			fault("output %d: partitioning %d", i, o.Partitioning)
		}
	}
	for i, in := range t.Inputs {
		if len(in.Channels) < 1 {
			fault("input %d has no channels", i)
		}
	}
	return errors.Join(faults...)
}
