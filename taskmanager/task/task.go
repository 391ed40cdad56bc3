package task

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/taskmanager/chain"
	"github.com/weirflow/weir/taskmanager/chanstate"
	"github.com/weirflow/weir/taskmanager/input"
	"github.com/weirflow/weir/taskmanager/lifecycle"
	"github.com/weirflow/weir/taskmanager/mailbox"
	"github.com/weirflow/weir/taskmanager/snapshot"
)

// mailboxCapacity is how many letters of each priority may wait.
const mailboxCapacity = 1024

// Owner is who runs tasks. Its methods are called from any goroutine and must not
// wait.
type Owner interface {
	// Changed tells what happened to the attempt.
	Changed(attempt weir.AttemptID, ev lifecycle.Event)
	// Send sends a message to the JobManager, or drops it if there is none.
	Send(m rpc.Message)
}

// Resources are what all tasks of a process share.
type Resources struct {
	Catalog  operator.Catalog
	Stack    *netstack.Stack
	Store    blobstore.Store
	Backends map[string]statebackend.Factory
	Executor *snapshot.Executor
	Channels *chanstate.Groups
	Metrics  *metrics.Registry // or nil
	Logger   *zap.Logger
	// OpenStore opens another checkpoint store by its location, for a restore from
	// the snapshot of another cluster; nil: that is refused.
	OpenStore    func(location string) (blobstore.Store, error)
	BuildTimeout time.Duration
	// NotifyTimeout bounds how long operators take when they are told how a checkpoint
	// ended; NotifyWarning is when the log begins to say so.
	NotifyTimeout, NotifyWarning time.Duration
}

// Task is one attempt. Its exported methods may be called from any goroutine.
type Task struct {
	d      rpc.TaskDeployment
	vertex *jobgraph.Vertex
	r      Resources
	owner  Owner
	logger *zap.Logger

	box      *mailbox.Mailbox[letter]
	suspend  atomic.Bool   // the chain is to return before the next record
	wake     chan struct{} // holds a token when an input, output or source may be ready
	sourceUp atomic.Bool   // the source may have something
	urgent   atomic.Bool   // an input may have what overtakes
	hastened atomic.Bool   // a barrier may wait for the end of the record
	cancel   context.CancelCauseFunc
	split    split
	view     atomic.Pointer[view] // what other goroutines may look at
	lateTo   atomic.Int64         // when the earliest timer was due, in milliseconds; 0: none waits

	// The rest is for the task's goroutine.

	io       *netstack.TaskIO
	ioHeld   atomic.Pointer[netstack.TaskIO] // io, for Interrupt
	chain    *chain.Guarded
	outputs  []*output
	in       *input.CheckpointedGate // nil for sources
	snapshot *snapshot.Coordinator
	channels channels
	keyed    map[weir.OperatorID]statebackend.Backend
	timers   []*chain.Timers
	alarm    *group.Timer // posts a letter when the earliest timer is due
	alarmAt  int64        // when, in milliseconds since the Unix epoch; 0: it is not set
	group    *group.Group
	metrics  *metrics.Task

	// Timers of a checkpoint's barriers: missing ones at the inputs, and those that were
	// not read yet in the outputs.
	inputTimer, outputTimer deadline
	debloated               []*debloated
	debloatTimer            *group.Timer

	timersDue bool
	lingering lingering
	// held is a trigger that waits until the last input has ended (behaviour §13).
	held   *trigger
	ending ending
	// ended: outputs have ended.
	ended bool
}

// view is what other goroutines may look at once the task is set up.
type view struct {
	io      *netstack.TaskIO
	in      *input.CheckpointedGate
	chain   operator.Chain
	outputs []*output
}

// New returns a task; it has no effects.
func New(d rpc.TaskDeployment, r Resources, owner Owner) (*Task, error) {
	v := int(d.Attempt.Vertex)
	if v < 0 || v >= len(d.Graph.Vertices) {
		return nil, fmt.Errorf("deployment of vertex %d of %d", v, len(d.Graph.Vertices))
	}
	t := &Task{
		d: d, vertex: &d.Graph.Vertices[v], r: r, owner: owner, wake: make(chan struct{}, 1),
		keyed: map[weir.OperatorID]statebackend.Backend{},
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	t.logger = r.Logger.With(
		zap.String("job", d.JobName), zap.String("task", t.Name()), zap.String("attempt", d.Attempt.String()),
	)
	t.box = mailbox.New[letter](mailboxCapacity, &t.suspend)
	return t, nil
}

// check refuses a deployment that contradicts itself.
func (t *Task) check() error {
	v, a := t.vertex, t.d.Attempt
	switch {
	case a.Subtask < 0 || int(a.Subtask) >= v.Parallelism:
		return fmt.Errorf("deployment of subtask %d of %d", a.Subtask, v.Parallelism)
	case v.MaxParallelism < v.Parallelism || v.MaxParallelism > weir.MaxMaxParallelism:
		return fmt.Errorf("deployment of %q with parallelism %d and maximum %d", v.Name, v.Parallelism, v.MaxParallelism)
	case len(t.d.Inputs) != len(v.Inputs) || len(t.d.Outputs) != len(v.Outputs):
		return fmt.Errorf("deployment of %q with %d inputs and %d outputs, want %d and %d",
			v.Name, len(t.d.Inputs), len(t.d.Outputs), len(v.Inputs), len(v.Outputs))
	case len(v.IDs) != len(v.Operators) || len(v.IDs) == 0:
		return fmt.Errorf("deployment of %q with %d operators and %d ids", v.Name, len(v.Operators), len(v.IDs))
	case v.Source != (len(v.Inputs) == 0):
		return fmt.Errorf("deployment of %q with %d inputs, source=%v", v.Name, len(v.Inputs), v.Source)
	}
	for i, in := range t.d.Inputs {
		if len(in.Channels) == 0 {
			return fmt.Errorf("deployment of %q: input %d has no channel", v.Name, i)
		}
	}
	for i, out := range t.d.Outputs {
		if len(out.Consumers) == 0 {
			return fmt.Errorf("deployment of %q: output %d has no consumer", v.Name, i)
		}
	}
	return nil
}

// Name is for people: the vertex and the subtask.
func (t *Task) Name() string { return fmt.Sprintf("%s[%d]", t.vertex.Name, t.d.Attempt.Subtask) }

// Goroutine is the name of the task's goroutine.
func (t *Task) Goroutine() string { return fmt.Sprintf("task/%s#%d", t.Name(), t.d.Attempt.N) }

// Start starts the task's goroutine in the group.
func (t *Task) Start(g *group.Group) error {
	t.group = g
	ctx, cancel := context.WithCancelCause(g.Context())
	t.cancel = cancel
	if err := t.reserve(); err != nil {
		cancel(err)
		return err
	}
	err := g.GoThen(t.Goroutine(), func(context.Context) error {
		defer cancel(nil)
		return t.run(ctx)
	}, t.exited)
	if err != nil {
		cancel(err)
		return errors.Join(err, t.io.Close())
	}
	return nil
}

// reserve sets the task's network buffers aside. This is done in the order of
// deployments, which go from the sinks to the sources: what is lent beyond the smallest
// pools is then never in the way of a task downstream, without which the borrower
// could not get on.
func (t *Task) reserve() error {
	spec, err := t.spec()
	if err != nil {
		return err
	}
	if t.io, err = t.r.Stack.OpenTask(spec); err != nil {
		return fmt.Errorf("network buffers: %w", err)
	}
	t.ioHeld.Store(t.io)
	return nil
}

// exited tells the owner how the goroutine ended.
func (t *Task) exited(err error) {
	a := t.d.Attempt
	if err == nil {
		t.owner.Changed(a, lifecycle.Finish{})
	} else {
		t.owner.Changed(a, lifecycle.Fail{Failure: t.failure(err)})
	}
	t.owner.Changed(a, lifecycle.Exited{})
}

// Interrupt makes a started task leave at the next element boundary, and whatever it
// waits for return.
func (t *Task) Interrupt(cause error) {
	t.cancel(cause)
	if io := t.ioHeld.Load(); io != nil {
		io.Cancel(cause)
	}
	t.suspend.Store(true)
}

// hurry makes the task look at what overtakes, before the next record.
func (t *Task) hurry() {
	t.urgent.Store(true)
	t.suspend.Store(true)
	t.hasten()
	t.awake()
}

// hasten sees to it that a task that waits for room in the middle of a record ends it: its
// barrier is wanted, and perhaps nobody makes room before that is out (behaviour §14).
func (t *Task) hasten() {
	if !t.d.Options.Unaligned {
		return
	}
	t.hastened.Store(true)
	if io := t.ioHeld.Load(); io != nil {
		io.Hasten()
	}
}

// awake makes a sleeping task look again.
func (t *Task) awake() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
