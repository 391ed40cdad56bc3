package taskmanager

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/statebackend"
)

// Options of a TaskManager.
type Options struct {
	ID          weir.TaskManagerID
	Incarnation weir.Incarnation
	CodeID      string // only jobs of this code are accepted
	Slots       int    // at least 1
	Host        string // for people
	// DataAddress is where peers dial the Stack; default: its own address.
	DataAddress    string
	MetricsAddress string
	Memory         int64 // network buffer memory in bytes, for registration

	Catalog operator.Catalog
	Stack   *netstack.Stack // started; the TaskManager does not close it
	Store   blobstore.Store // the checkpoint store
	// OpenStore opens another checkpoint store by its location, for jobs that start
	// from a snapshot elsewhere; nil: that is refused.
	OpenStore func(location string) (blobstore.Store, error)
	Backends  map[string]statebackend.Factory
	Dialer    rpc.Dialer
	Metrics   *metrics.Registry // default: figures are shown nowhere
	Logger    *zap.Logger       // default: none

	// GraceTime is how long tasks run without a JobManager; default 60 s. Then they
	// fail.
	GraceTime time.Duration
	// BuildTimeout bounds the building of a job's program; default 30 s.
	BuildTimeout time.Duration
	// CancelTimeout bounds how long a task takes to stop once it was told to;
	// default 30 s. Then Escalate is called.
	CancelTimeout time.Duration
	// NotifyTimeout bounds how long a task's operators take when they are told how a
	// checkpoint ended; default 10 min. Then the task fails, and what they were to
	// commit is committed when it is restored. NotifyWarning is when the log begins to name
	// the operator; default 30 s.
	NotifyTimeout, NotifyWarning time.Duration
	// Escalate is called, from any goroutine, when the process should end: when user
	// code does not return, once per attempt, since it cannot be made to; and, with
	// the zero attempt, when the TaskManager itself has failed, which only a bug can
	// bring about. It must not wait. Default: only the log says so.
	Escalate func(attempt weir.AttemptID, err error)
	// JobGone is called when a job has had no attempt here for some minutes: its
	// series may go, unless the JobManager shows some in the same registry.
	JobGone func(job weir.JobID)
	// DialBackoff is the first pause between attempts to reach a JobManager; default
	// 100 ms. It doubles up to DialBackoffMax, default 3 s, with a jitter.
	DialBackoff, DialBackoffMax time.Duration
	// DialTimeout bounds one attempt, and the wait for the answer to a registration;
	// default 10 s.
	DialTimeout time.Duration
	// SnapshotWorkers write snapshots; default 4. SnapshotQueue is how many may wait
	// for them; default 256.
	SnapshotWorkers, SnapshotQueue int
}

// Defaults fills in what was left zero.
func (o Options) Defaults() Options {
	def(&o.GraceTime, 60*time.Second)
	def(&o.BuildTimeout, 30*time.Second)
	def(&o.CancelTimeout, 30*time.Second)
	def(&o.NotifyTimeout, 10*time.Minute)
	def(&o.NotifyWarning, 30*time.Second)
	def(&o.DialTimeout, 10*time.Second)
	def(&o.DialBackoff, 100*time.Millisecond)
	def(&o.DialBackoffMax, 3*time.Second)
	def(&o.SnapshotWorkers, 4)
	def(&o.SnapshotQueue, 256)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Escalate == nil {
		o.Escalate = func(weir.AttemptID, error) {}
	}
	if o.JobGone == nil {
		o.JobGone = func(weir.JobID) {}
	}
	return o
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Validate returns all that is wrong, joined.
func (o Options) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("task manager: "+format, args...))
		}
	}
	check(o.Slots >= 1, "%d slots, want at least 1", o.Slots)
	check(o.Catalog != nil, "no catalog")
	check(o.Stack != nil, "no network stack")
	check(o.Store != nil, "no checkpoint store")
	check(len(o.Backends) > 0, "no state backend")
	check(o.Dialer != nil, "no dialer")
	check(o.GraceTime > 0 && o.BuildTimeout > 0 && o.CancelTimeout > 0 && o.NotifyTimeout > 0 && o.NotifyWarning > 0, "a timeout is not positive")
	check(o.DialBackoff > 0 && o.DialBackoffMax >= o.DialBackoff, "dial backoff %v to %v", o.DialBackoff, o.DialBackoffMax)
	check(o.SnapshotWorkers > 0 && o.SnapshotQueue > 0, "%d snapshot workers, %d waiting", o.SnapshotWorkers, o.SnapshotQueue)
	return errors.Join(faults...)
}
