package netstack

import (
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
}

// OutputSpec is one result partition.
type OutputSpec struct {
	Edge           int // index in the job graph
	Partitioning   partition.Partitioning
	MaxParallelism int        // of the consumer, for Hash
	Consumers      []Consumer // one per subpartition
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

// BufferOptions say how many segments a task may use. Zero values stand for the
// defaults, except Timeout and Overdraft.
type BufferOptions struct {
	Timeout   time.Duration // publish at least that often; 0: after every record
	Exclusive int           // per remote channel, at least 1; default 2
	Floating  int           // per gate with remote channels, at least 1; default 8
	PerOutput int           // soft limit of segments per subpartition, at least 1; default 10
	Overdraft int           // per partition beyond that, to end a record that was begun; default 0
}
