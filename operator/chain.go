package operator

import (
	"math"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/statebackend"
)

// BatchSize is the largest number of records in a Batch (DECISIONS 21).
const BatchSize = 64

// NoTimestamp marks a record without a timestamp.
const NoTimestamp int64 = math.MinInt64

// Batch is a run of records cut from one channel of one gate, column by column.
type Batch struct {
	Input     int // index of the gate among the vertex's inputs: the head operator's input
	Next      int // first record that was not run yet
	N         int // records in the batch
	Hash      [BatchSize]uint64
	Timestamp [BatchSize]int64 // milliseconds since the Unix epoch, or NoTimestamp
	Payload   [BatchSize][]byte
}

// Output is one result partition as seen by the tail of a chain.
type Output interface {
	// Emit appends one record; payload is copied. hash is the key's hash on keyed
	// edges and ignored on others. It may wait for a buffer. After the task was
	// cancelled it drops the record and returns at once.
	Emit(hash uint64, timestamp int64, payload []byte)
	// Appender encodes records where they are sent from, which is faster. It is nil if
	// there is none; what it does not take is to be emitted. While the output is full,
	// it still takes what fits.
	Appender() *partition.Appender
	// EmitTo is Emit for edges of which the user's partitioner chooses the
	// subpartition, which is less than Subpartitions.
	EmitTo(subpartition int, timestamp int64, payload []byte)
	// Subpartitions is the number of consumers' subtasks that the output leads to.
	Subpartitions() int
	// Watermark sends a watermark to every subpartition.
	Watermark(w weir.Watermark)
	// Status tells every subpartition that this subtask became idle or active.
	Status(idle bool)
}

// TimerService keeps the processing-time timers of one keyed operator as entries
// of its state (DECISIONS 25).
type TimerService interface {
	// Register sets a timer for the key at a time in milliseconds since the Unix
	// epoch. A second one for the same key and time is the same timer.
	Register(hash uint64, key []byte, at int64)
	// Delete removes it, if it is set.
	Delete(hash uint64, key []byte, at int64)
	// Now is the processing time in milliseconds since the Unix epoch.
	Now() int64
}

// Counter is a user's metric that only grows. Calls are cheap and for the task's
// goroutine.
type Counter interface{ Add(n int64) }

// Gauge is a user's metric that is set.
type Gauge interface{ Set(v float64) }

// Metrics makes a user's metrics; the names get the operator's as a label.
type Metrics interface {
	Counter(name string) Counter
	Gauge(name string) Gauge
}

// Env is what a task gives its chain.
type Env struct {
	Job            weir.JobID
	JobName        string
	Attempt        weir.AttemptID
	Vertex         string // the vertex's name
	Subtask        int
	Parallelism    int
	MaxParallelism int
	KeyGroups      weir.KeyGroupRange
	// Outputs are the vertex's result partitions, in the order of vertex.Outputs.
	Outputs []Output
	// LastCheckpoint says that the task ends only after a checkpoint that it took when its
	// data had ended. Without one, what is to be published at the end is published then.
	LastCheckpoint bool
	// Suspend is set when the task wants the chain to return to it before the next
	// record: mail waits, output is full, or the task was cancelled.
	Suspend *atomic.Bool
	// Wake makes the task look at its source again. Callable from any goroutine.
	Wake func()
	// Backend returns the operator's keyed backend, made and restored.
	Backend func(op weir.OperatorID) (statebackend.Backend, error)
	// Timers returns the operator's timers; fire is called on the task's goroutine
	// for each due timer, after it was removed.
	Timers func(op weir.OperatorID, fire func(hash uint64, key []byte, at int64) error) (TimerService, error)
	// Restored returns the elements of the operator's own state in the snapshot
	// that the task starts from, and whether there is such a snapshot.
	Restored func(op weir.OperatorID) (elements [][]byte, restored bool)
	// Splits returns the splits assigned to the source before it was deployed.
	Splits func(op weir.OperatorID) [][]byte
	// SendEvent sends an event to the operator's coordinator.
	SendEvent func(op weir.OperatorID, event []byte)
	// Logger returns the operator's logger.
	Logger func(operator string) *zap.Logger
	// Metrics returns the operator's metrics.
	Metrics func(operator string) Metrics
}

// State is an operator's own state in a snapshot, as a list whose elements
// can be dealt to other subtasks when parallelism changes (behaviour §21.2, SPLIT).
type State struct {
	Operator weir.OperatorID
	Name     string
	Elements [][]byte
}

// SourceStatus is what a source has after a Poll.
type SourceStatus uint8

// Source statuses.
const (
	SourceMore  SourceStatus = iota // poll again at once
	SourceEmpty                     // nothing now; it calls Env.Wake when there is
	SourceEnd                       // bounded and at its end
)

// Chain is the fused operators of one task.
type Chain interface {
	// Open opens the operators, tail first.
	Open(env *Env) error
	// Borrows says whether the head wants payloads that are valid only during
	// ProcessBatch, which saves a copy of each segment.
	Borrows() bool
	// Process runs the batch from b.Next, depth first, until its end or until
	// Env.Suspend is seen set between two records; b.Next says how far it came.
	Process(b *Batch) error
	// Poll lets the source emit at most max records. Only for chains with a source.
	Poll(max int) (SourceStatus, error)
	// HandleEvent takes an event of the operator's coordinator.
	HandleEvent(op weir.OperatorID, event []byte) error
	// Watermark advances event time, after all inputs were combined.
	Watermark(w weir.Watermark) error
	// Status tells that all inputs became idle, or one active again.
	Status(idle bool) error
	// PrepareSnapshot may emit records; the barrier follows them.
	PrepareSnapshot(id weir.CheckpointID) error
	// SnapshotState returns the operators' own state.
	SnapshotState(id weir.CheckpointID) ([]State, error)
	// NotifyComplete and NotifyAborted tell of a checkpoint's end.
	NotifyComplete(id weir.CheckpointID) error
	NotifyAborted(id weir.CheckpointID) error
	// EndOfInput tells that input number i, numbered as in Batch, has ended for good.
	// Sources get none.
	EndOfInput(input int) error
	// Finish is called once after all input ended (or the source did), before the
	// outputs end: operators may emit their last records.
	Finish() error
	// Close closes the operators in reverse order of Open, also after a failure.
	Close() error
	// Counts returns the records that came in and went out, per operator, for
	// metrics. Callable from any goroutine.
	Counts() []Counts
}

// Counts are an operator's counters.
type Counts struct {
	Operator              string
	RecordsIn, RecordsOut int64
}
