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
	// Splits are the initial splits of the sources in this task, by operator name.
	Splits map[string][][]byte
}
