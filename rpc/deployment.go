package rpc

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
)

// Location is where an attempt runs.
type Location struct {
	TaskManager weir.TaskManagerID
	Incarnation weir.Incarnation
	DataAddress string
}

// InputChannel is one channel of a gate: a subpartition of a producer.
type InputChannel struct {
	Producer     weir.AttemptID
	Subpartition int
	At           Location
}

// InputGate is one input of a task.
type InputGate struct {
	Edge         int // index in the job graph
	Partitioning jobgraph.Partitioning
	Channels     []InputChannel // by producer subtask
}

// ResultPartition is one output of a task.
type ResultPartition struct {
	Edge           int
	Partitioning   jobgraph.Partitioning
	MaxParallelism int        // of the consumer, for key groups
	Consumers      []Consumer // one per subpartition
	// Aligns says that barriers never overtake on this edge (behaviour §17): pointwise,
	// broadcast and user-partitioned edges, and all others into the same task.
	Aligns bool
}

// RecoveredChannel is in-flight data of a snapshot that a task processes before it
// runs: what the consumer of one old channel captured, then what the producer did,
// which together are whole elements.
type RecoveredChannel struct {
	Gate     int   // index among the task's inputs
	Producer int32 // subtask, when the snapshot was taken
	Consumer int32 // subtask, when the snapshot was taken
	// Channel is the gate's channel that takes the old one's place, for watermarks and
	// status. It is -1 if there is none: the producers' parallelism changed, or the
	// channel's new consumer reads several old ones. Watermarks and status are then
	// dropped; the producers send theirs anew.
	Channel int
	// Filter says that other tasks read this data too: records whose key group is not
	// of this task are dropped.
	Filter bool
	// Captured are the bytes in order: ConsumerSide, ProducerSide.
	Captured []weir.StateHandle
}

// Consumer is who reads a subpartition.
type Consumer struct {
	Attempt weir.AttemptID
	At      Location
}

// TaskOptions are a job's options as far as a task needs them.
type TaskOptions struct {
	BufferTimeout               time.Duration // 0: flush after every record
	ExclusiveBuffers            int           // per remote channel (buffers-per-channel)
	FloatingBuffers             int           // per gate
	BuffersPerOutput            int           // soft limit of queued buffers per subpartition
	OverdraftBuffers            int           // per partition
	Checkpointing               bool
	AtLeastOnce                 bool
	CheckpointsAfterTasksFinish bool
	StateBackend                string // "heap"
	InlineThreshold             int    // bytes of state up to which it travels in the acknowledgement
	ObjectReuse                 bool
	// Unaligned says that barriers of checkpoints may overtake data.
	Unaligned bool
	// ChannelStateSubtasks is how many subtasks at most share one channel-state file.
	ChannelStateSubtasks int
	// ChannelStateMemory bounds, in bytes, what one channel-state writer holds of
	// captured data; a checkpoint that needs more fails.
	ChannelStateMemory int64
	Debloat            DebloatOptions
}

// DebloatOptions size segments by how fast they are consumed (behaviour §22).
type DebloatOptions struct {
	Enabled   bool
	Period    time.Duration // between two calculations
	Target    time.Duration // wanted time to drain what is in flight
	Samples   int           // of the moving average
	Threshold int           // least change that is announced, in percent
}

// TaskDeployment is everything a TaskManager needs to run one attempt.
type TaskDeployment struct {
	Attempt    weir.AttemptID
	JobName    string
	Entrypoint string
	Params     map[string]string
	CodeID     string
	GraphHash  jobgraph.Digest
	GraphText  string // canonical text, for a readable mismatch
	// Graph is the physical plan; the chain of Graph.Vertices[Attempt.Vertex] runs.
	Graph   jobgraph.JobGraph
	Inputs  []InputGate       // in the order of the vertex's inputs
	Outputs []ResultPartition // in the order of the vertex's outputs
	Options TaskOptions
	// Directory is the job's directory in the checkpoint store, relative to its root.
	Directory string
	// RestoredFrom is the checkpoint that Restore is from, or NoCheckpoint.
	RestoredFrom weir.CheckpointID
	Restore      []weir.OperatorSubtaskState
	// Recovered is in-flight data, in the order in which it is processed.
	Recovered []RecoveredChannel
	// Finished says that the operators had emitted their last record in the snapshot:
	// they are restored, and told of checkpoints, but do no work (behaviour §11).
	Finished bool
	// Splits are the initial splits of the sources in this task, by operator name.
	Splits map[string][][]byte
}
