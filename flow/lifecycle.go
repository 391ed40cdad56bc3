package flow

import (
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/operator"
)

// The interfaces below are optional: a [Mapper], [Processor], [Reader] or [Sink]
// that implements one is called. All calls come from the task's goroutine.

// Opener is opened before the first record.
type Opener interface{ Open(r *Runtime) error }

// Closer is closed after the last record, and after a failure too.
type Closer interface{ Close() error }

// CheckpointListener is told of completed checkpoints. Not every completed
// checkpoint is told of, but a later one covers an earlier one.
type CheckpointListener interface {
	NotifyComplete(id weir.CheckpointID) error
}

// AbortListener is told of checkpoints that will not complete.
type AbortListener interface {
	NotifyAborted(id weir.CheckpointID) error
}

// Flusher hands over what it has buffered: before each snapshot, and at the end.
type Flusher interface{ Flush() error }

// SnapshotListener is told the number of each snapshot, after Flush and right before
// its state is taken: what belongs to it can then be told from what belongs to the next.
type SnapshotListener interface {
	BeforeSnapshot(id weir.CheckpointID) error
}

// EndListener is told that the operator's data has ended, after the last Flush.
// checkpointed says that a checkpoint follows, which will be told of as complete before
// the task ends; not so if the job takes none.
type EndListener interface {
	EndOfData(checkpointed bool) error
}

// StateKeeper has state of its own besides keyed state: a list whose elements may
// be dealt anew to the subtasks when the parallelism changes.
type StateKeeper interface {
	SnapshotState() ([][]byte, error)
	// RestoreState is called after Open, before the first record, if the job resumes
	// from a snapshot.
	RestoreState(elements [][]byte) error
}

// EventHandler is a [Reader] that gets events of its enumerator.
type EventHandler interface{ HandleEvent(event []byte) error }

// Runtime is what an operator may know and use while it runs.
type Runtime struct {
	env      *operator.Env
	operator string
	id       weir.OperatorID
	metrics  operator.Metrics
}

func newRuntime(env *operator.Env, name string) *Runtime {
	return &Runtime{env: env, operator: name, id: weir.OperatorIDOf(name)}
}

// Job is the job's name.
func (r *Runtime) Job() string { return r.env.JobName }

// JobID is the job's id, which is another one for each submission.
func (r *Runtime) JobID() weir.JobID { return r.env.Job }

// Operator is the operator's name.
func (r *Runtime) Operator() string { return r.operator }

// Subtask is the index of this parallel instance, from 0.
func (r *Runtime) Subtask() int { return r.env.Subtask }

// Parallelism is the number of parallel instances.
func (r *Runtime) Parallelism() int { return r.env.Parallelism }

// Logger is the operator's logger; job, task and operator are among its fields.
func (r *Runtime) Logger() *zap.Logger {
	if r.env.Logger == nil {
		return zap.NewNop()
	}
	return r.env.Logger(r.operator)
}

// Counter is a metric of the operator that only grows. Ask for it once, in Open.
func (r *Runtime) Counter(name string) operator.Counter { return r.userMetrics().Counter(name) }

// Gauge is a metric of the operator that is set. Ask for it once, in Open.
func (r *Runtime) Gauge(name string) operator.Gauge { return r.userMetrics().Gauge(name) }

// Wake makes the task poll a source again that had nothing. It may be called from
// any goroutine.
func (r *Runtime) Wake() { r.env.Wake() }

// SendEvent sends an event to the source's enumerator.
func (r *Runtime) SendEvent(event []byte) { r.env.SendEvent(r.id, event) }

// Now is the processing time.
func (r *Runtime) Now() time.Time { return time.Now() }

func (r *Runtime) userMetrics() operator.Metrics {
	if r.metrics == nil {
		r.metrics = r.env.Metrics(r.operator)
	}
	return r.metrics
}
