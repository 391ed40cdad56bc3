package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/inbox"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/operator"
)

// enumeratorStart bounds how long an enumerator may take to start and to assign its
// splits; enumeratorCall any other call of it; enumeratorStop how long one that was told
// to end is waited for.
const (
	enumeratorStart = time.Minute
	enumeratorCall  = 2 * time.Minute
	enumeratorStop  = 5 * time.Second
)

// errStartTimeout is the cause of ending an enumerator that does not start.
var errStartTimeout = errors.New("the enumerator did not start in time")

// enumerator is the goroutine coordinator/<op>, on which alone a source's user code in
// the JobManager runs. It posts to the job's loop; the loop posts requests to it. One
// that hangs is abandoned.
type enumerator struct {
	start     StartCoordinator
	spec      *Spec
	catalog   operator.Catalog
	buildTime time.Duration
	post      func(Event)
	group     *group.Group
	requests  *inbox.Inbox[enumeratorRequest]

	mu struct {
		sync.Mutex
		tokens  opcoord.Token
		waiting map[opcoord.Token]chan error // calls of SendEvent
	}
}

// enumeratorRequest is what the loop wants of an enumerator; one field is set.
type enumeratorRequest struct {
	snapshot weir.CheckpointID
	complete weir.CheckpointID
	event    *DeliverEvent
}

func (r enumeratorRequest) String() string {
	switch {
	case r.event != nil:
		return fmt.Sprintf("handling an event of subtask %d", r.event.Subtask)
	case r.snapshot != weir.NoCheckpoint:
		return fmt.Sprintf("its snapshot for checkpoint %d", r.snapshot)
	default:
		return fmt.Sprintf("the notification of checkpoint %d", r.complete)
	}
}

// startEnumerator starts the goroutine.
func startEnumerator(ctx context.Context, spec *Spec, a StartCoordinator, catalog operator.Catalog, buildTime time.Duration, post func(Event)) *enumerator {
	e := &enumerator{
		start: a, spec: spec, catalog: catalog, buildTime: buildTime, post: post,
		group:    group.New(ctx, "coordinator/"+a.Name),
		requests: inbox.New[enumeratorRequest](),
	}
	e.mu.waiting = make(map[opcoord.Token]chan error)
	_ = e.group.GoThen("coordinator/"+a.Name, e.run, e.ended)
	return e
}

// stop tells the enumerator to end; await waits until it has, for a while.
func (e *enumerator) stop(cause error) { e.group.Cancel(cause) }

func (e *enumerator) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), enumeratorStop)
	defer cancel()
	return e.group.Stop(ctx)
}

// ended reports how the goroutine ended, unless it was told to.
func (e *enumerator) ended(err error) {
	if err == nil || e.group.Context().Err() != nil {
		return
	}
	failure := weir.Failure{Message: err.Error(), Fault: weir.FaultUser, Operator: e.start.Name, Subtask: -1}
	if known, ok := errors.AsType[*weir.Failure](err); ok {
		failure.Fault, failure.NoRetry = known.Fault, known.NoRetry
	}
	var panicked *group.PanicError
	if errors.As(err, &panicked) {
		failure.Message, failure.Stack = "the enumerator panicked: "+panicked.Error(), panicked.Stack
	}
	if errors.Is(err, group.ErrExited) {
		failure.Message = "the enumerator ended its goroutine by runtime.Goexit; return an error instead"
	}
	var returned *returnedError
	if errors.As(err, &returned) {
		failure.Stack = returned.stack
	}
	var mismatch *mismatchError
	if errors.As(err, &mismatch) || errors.Is(err, operator.ErrUnknownEntrypoint) || errors.Is(err, operator.ErrBadParams) {
		failure.NoRetry = true
	}
	e.broke(failure)
}

func (e *enumerator) broke(f weir.Failure) {
	e.post(CoordinatorBroke{Run: e.start.Run, Operator: e.start.Operator, Failure: f})
}

// run starts the user's enumerator and serves requests until told to end.
func (e *enumerator) run(ctx context.Context) error {
	watchdog := e.watch(enumeratorStart, errStartTimeout)
	user, err := e.build(ctx)
	if err != nil {
		return err
	}
	defer user.Close()
	splits, err := e.open(ctx, user)
	if err != nil {
		return err
	}
	watchdog.Stop()
	e.post(CoordinatorStarted{Run: e.start.Run, Operator: e.start.Operator, Splits: splits})
	for {
		for _, r := range e.requests.Take() {
			watchdog := e.watch(enumeratorCall, fmt.Errorf("the enumerator does not return from %s within %s", r, enumeratorCall))
			err := e.serve(ctx, user, r)
			watchdog.Stop()
			if err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.requests.Wake():
		}
	}
}

// watch reports the enumerator as broken unless the timer is stopped in time. The job
// then goes on with another one.
func (e *enumerator) watch(d time.Duration, late error) *group.Timer {
	return e.group.AfterFunc("coordinator/watchdog", d, func(context.Context) {
		e.broke(weir.Failure{Message: late.Error(), Fault: weir.FaultUser, Operator: e.start.Name, Subtask: -1})
	})
}

// mismatchError says that this binary builds another graph than the job has.
type mismatchError struct{ err error }

func (m *mismatchError) Error() string {
	return "the program of this JobManager has another graph than the job: " + m.err.Error()
}

func (m *mismatchError) Unwrap() error { return m.err }

// returnedError is an error of the user's enumerator with the stack of where it was
// received.
type returnedError struct {
	err   error
	stack string
}

func (r *returnedError) Error() string { return r.err.Error() }
func (r *returnedError) Unwrap() error { return r.err }

// returned wraps an error that the user's enumerator returned.
func returned(doing string, user operator.Enumerator, err error) error {
	stack := string(debug.Stack())
	if user != nil {
		stack = fmt.Sprintf("error returned by a method of %T\n%s", user, stack)
	}
	return &returnedError{err: fmt.Errorf("%s: %w", doing, err), stack: stack}
}

// build makes the program anew, so that nothing it captured survives a restart.
func (e *enumerator) build(ctx context.Context) (operator.Enumerator, error) {
	program, err := buildProgram(ctx, e.catalog, e.spec, e.buildTime)
	if err != nil {
		return nil, err
	}
	user, err := program.NewEnumerator(e.start.Name)
	if err != nil {
		return nil, returned("make the enumerator", nil, err)
	}
	return user, nil
}

// buildProgram builds the job and checks that it is the one of the spec.
func buildProgram(ctx context.Context, catalog operator.Catalog, spec *Spec, limit time.Duration) (operator.Program, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	program, err := catalog.Build(ctx, spec.Entrypoint, spec.Params)
	if err != nil {
		return nil, fmt.Errorf("build the job: %w", err)
	}
	if logical := program.Logical(); logical.Digest() != spec.Graph.Hash {
		return nil, &mismatchError{jobgraph.CheckText(spec.GraphText, logical.Text())}
	}
	return program, nil
}

func (e *enumerator) open(ctx context.Context, user operator.Enumerator) ([][][]byte, error) {
	if e.start.Restored {
		if err := user.Restore(e.start.State); err != nil {
			return nil, returned("restore the enumerator", user, err)
		}
	}
	if err := user.Start(ctx, enumeratorContext{e}); err != nil {
		return nil, returned("start the enumerator", user, err)
	}
	if e.start.Restored && !planted.Is(planted.SplitsReassigned) {
		return nil, nil
	}
	splits, err := user.Assign(ctx, e.start.Parallelism)
	if err != nil {
		return nil, returned("assign splits", user, err)
	}
	if splits == nil {
		splits = make([][][]byte, e.start.Parallelism)
	}
	return splits, nil
}

func (e *enumerator) serve(ctx context.Context, user operator.Enumerator, r enumeratorRequest) error {
	switch {
	case r.event != nil:
		if err := user.HandleEvent(ctx, int(r.event.Subtask), r.event.Event); err != nil {
			return returned(fmt.Sprintf("handle an event of subtask %d", r.event.Subtask), user, err)
		}
	case r.snapshot != weir.NoCheckpoint:
		state, err := user.Snapshot(ctx, int64(r.snapshot))
		if err == nil && len(state) > operator.MaxEnumeratorState {
			err = fmt.Errorf("its state is %d bytes, at most %d are allowed: keep what is large outside, or in the readers' splits", len(state), operator.MaxEnumeratorState)
		}
		if err != nil {
			e.coordinate(opcoord.SnapshotRefused{Checkpoint: r.snapshot, Message: err.Error()})
			return nil
		}
		e.coordinate(opcoord.SnapshotTaken{Checkpoint: r.snapshot, State: state})
	default:
		user.NotifyComplete(int64(r.complete))
	}
	return nil
}

func (e *enumerator) coordinate(ev opcoord.Event) {
	e.post(Coordination{Run: e.start.Run, Operator: e.start.Operator, Event: ev})
}

// enumeratorContext is what the user's enumerator may use.
type enumeratorContext struct{ e *enumerator }

var _ operator.EnumeratorContext = enumeratorContext{}

func (c enumeratorContext) Parallelism() int { return c.e.start.Parallelism }

// SendEvent posts the event and waits for the gate's word.
func (c enumeratorContext) SendEvent(subtask int, event []byte) error {
	if subtask < 0 || subtask >= c.e.start.Parallelism {
		return fmt.Errorf("there is no subtask %d", subtask)
	}
	reply := make(chan error, 1)
	token := c.e.expect(reply)
	c.e.coordinate(opcoord.EventGiven{Token: token, Subtask: int32(subtask), Event: event})
	select {
	case err := <-reply:
		return err
	case <-c.e.group.Context().Done():
		return context.Cause(c.e.group.Context())
	}
}

func (e *enumerator) expect(reply chan error) opcoord.Token {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.tokens++
	e.mu.waiting[e.mu.tokens] = reply
	return e.mu.tokens
}

// answer is the loop's answer to a SendEvent.
func (e *enumerator) answer(a AnswerCoordinator) {
	e.mu.Lock()
	reply := e.mu.waiting[a.Token]
	delete(e.mu.waiting, a.Token)
	e.mu.Unlock()
	if reply == nil {
		return
	}
	if a.Error != "" {
		reply <- errors.New(a.Error)
		return
	}
	reply <- nil
}
