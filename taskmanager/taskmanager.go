package taskmanager

import (
	"context"
	"errors"
	"sync"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager/lifecycle"
	"github.com/weirflow/weir/taskmanager/snapshot"
	"github.com/weirflow/weir/taskmanager/task"
)

// errClosing is why tasks end when the TaskManager does.
var errClosing = errors.New("the task manager is closing")

// TaskManager runs subtasks. Its methods may be called from any goroutine.
type TaskManager struct {
	o     Options
	inbox *inbox
	ended chan struct{} // closed when tm/loop has ended

	mu struct {
		sync.Mutex
		group    *group.Group // nil before Start
		executor *snapshot.Executor
		closed   bool
	}
}

// New returns a TaskManager; it has no effects.
func New(o Options) (*TaskManager, error) {
	o = o.Defaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &TaskManager{o: o, inbox: newInbox(), ended: make(chan struct{})}, nil
}

// Start begins to look for a JobManager. It returns at once; ctx is not kept beyond
// what it carries.
func (t *TaskManager) Start(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed || t.mu.group != nil {
		return errors.New("task manager: started twice, or after Close")
	}
	g := group.New(context.WithoutCancel(ctx), "taskmanager")
	executor, err := snapshot.NewExecutor(g, t.o.SnapshotWorkers, t.o.SnapshotQueue)
	if err != nil {
		return err
	}
	l := newLoop(t, g, executor)
	if err := g.GoThen("tm/loop", l.run, t.failed); err != nil {
		executor.Close()
		return err
	}
	t.mu.group, t.mu.executor = g, executor
	return nil
}

// failed ends the process if the loop has panicked: nobody else can do its work.
func (t *TaskManager) failed(err error) {
	if _, ok := errors.AsType[*group.PanicError](err); ok {
		t.o.Logger.Error("the task manager has failed", zap.Error(err))
		t.o.Escalate(weir.AttemptID{}, err)
	}
}

// Close cancels what runs, waits until it has ended, or until ctx is done, and ends
// the session. Idempotent.
func (t *TaskManager) Close(ctx context.Context) error {
	g, executor := t.closing()
	if g == nil {
		return nil
	}
	t.inbox.post(stop{})
	select {
	case <-t.ended:
	case <-ctx.Done():
	}
	executor.Close()
	return g.Stop(ctx)
}

func (t *TaskManager) closing() (*group.Group, *snapshot.Executor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.closed = true
	return t.mu.group, t.mu.executor
}

// owner is the TaskManager as its tasks see it.
type owner struct{ inbox *inbox }

var _ task.Owner = owner{}

// Changed brings what happened to an attempt to the loop.
func (o owner) Changed(a weir.AttemptID, ev lifecycle.Event) { o.inbox.post(changed{a, ev}) }

// Send brings a message for the JobManager to the loop, so that the order is kept.
func (o owner) Send(m rpc.Message) { o.inbox.post(send{m}) }

// hears is the TaskManager as a session sees it.
type hears struct{ inbox *inbox }

var _ rpc.SessionHandler = hears{}

// Receive brings a message to the loop.
func (h hears) Receive(s rpc.Session, m rpc.Message) { h.inbox.post(received{s, m}) }

// Closed brings the end of a session to the loop.
func (h hears) Closed(s rpc.Session, cause error) { h.inbox.post(closed{s, cause}) }
