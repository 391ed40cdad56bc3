package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/inbox"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/snapshotmeta"
)

// Bounds of master hooks.
const (
	hookRestore  = time.Minute // how long Restore may take
	maxHookState = 1 << 20     // bytes
)

// hook is the goroutine hook/<name>, on which alone a master hook runs. It posts to the
// job's loop; the loop posts requests to it. One that hangs is abandoned with the job.
type hook struct {
	name     string
	make     func(ctx context.Context) (operator.MasterHook, error)
	post     func(Event)
	group    *group.Group
	requests *inbox.Inbox[hookRequest]

	mu struct {
		sync.Mutex
		busy string // what it does; empty: nothing
	}
}

// hookRequest is what the loop wants of a hook; one field is set.
type hookRequest struct {
	restore  *hookRestored
	trigger  weir.CheckpointID
	complete weir.CheckpointID
}

// hookRestored is what a run starts from.
type hookRestored struct {
	run        uint64
	checkpoint weir.CheckpointID
	state      []byte
}

// startHook starts the goroutine. The hook is made on it.
func startHook(ctx context.Context, name string, newHook func(context.Context) (operator.MasterHook, error), post func(Event)) *hook {
	h := &hook{name: name, make: newHook, post: post, group: group.New(ctx, "hook/"+name), requests: inbox.New[hookRequest]()}
	_ = h.group.GoThen("hook/"+name, h.run, h.ended)
	return h
}

// ended reports a hook that panicked or could not be made: the job has another one made.
func (h *hook) ended(err error) {
	if err == nil || h.group.Context().Err() != nil {
		return
	}
	f := weir.Failure{Message: fmt.Sprintf("master hook %q: %v", h.name, err), Fault: weir.FaultUser, Subtask: -1}
	if panicked, ok := errors.AsType[*group.PanicError](err); ok {
		f.Stack = panicked.Stack
	}
	var mismatch *mismatchError
	f.NoRetry = errors.As(err, &mismatch)
	h.post(HookBroke{Hook: h.name, Failure: f})
}

func (h *hook) run(ctx context.Context) error {
	user, err := h.make(ctx)
	if err != nil {
		return err
	}
	defer user.Close()
	for {
		for _, r := range h.requests.Take() {
			if err := h.serve(ctx, user, r); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-h.requests.Wake():
		}
	}
}

func (h *hook) serve(ctx context.Context, user operator.MasterHook, r hookRequest) error {
	h.setBusy(r.String())
	defer h.setBusy("")
	switch {
	case r.restore != nil:
		return h.restore(ctx, user, r.restore)
	case r.trigger != weir.NoCheckpoint:
		state, err := user.Trigger(ctx, int64(r.trigger))
		if err == nil && len(state) > maxHookState {
			err = fmt.Errorf("its state has %d bytes, the most is %d", len(state), maxHookState)
		}
		if err != nil {
			h.post(Checkpointing{checkpointing.HookFailed{Checkpoint: r.trigger, Hook: h.name, Message: err.Error()}})
			return nil
		}
		h.post(Checkpointing{checkpointing.HookCompleted{Checkpoint: r.trigger, Hook: h.name, State: state}})
	default:
		user.NotifyComplete(int64(r.complete))
	}
	return nil
}

func (h *hook) restore(ctx context.Context, user operator.MasterHook, r *hookRestored) error {
	watchdog := h.group.AfterFunc("hook/watchdog", hookRestore, func(context.Context) {
		h.post(HookBroke{Hook: h.name, Failure: weir.Failure{
			Message: fmt.Sprintf("master hook %q does not return from Restore within %s", h.name, hookRestore), Fault: weir.FaultUser, Subtask: -1,
		}})
	})
	defer watchdog.Stop()
	if err := user.Restore(ctx, int64(r.checkpoint), r.state); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	h.post(HookRestored{Run: r.run, Hook: h.name})
	return nil
}

func (h *hook) setBusy(with string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.busy = with
}

// trigger asks for the hook's state. One that is busy with an earlier call fails the
// checkpoint at once, so that requests to a hook that hangs do not pile up.
func (h *hook) trigger(id weir.CheckpointID) {
	h.mu.Lock()
	busy := h.mu.busy
	h.mu.Unlock()
	if busy != "" {
		h.post(Checkpointing{checkpointing.HookFailed{Checkpoint: id, Hook: h.name, Message: "busy with " + busy}})
		return
	}
	h.requests.Post(hookRequest{trigger: id})
}

// notify tells the hook of a completed checkpoint, unless it is busy: a later
// notification covers this one.
func (h *hook) notify(id weir.CheckpointID) {
	h.mu.Lock()
	busy := h.mu.busy
	h.mu.Unlock()
	if busy == "" {
		h.requests.Post(hookRequest{complete: id})
	}
}

func (r hookRequest) String() string {
	switch {
	case r.restore != nil:
		return "being restored"
	case r.trigger != weir.NoCheckpoint:
		return fmt.Sprintf("checkpoint %d", r.trigger)
	default:
		return fmt.Sprintf("the notification of checkpoint %d", r.complete)
	}
}

// restoreHooks makes the hooks anew, so that nothing stays of one that hung, and has them
// restored.
func (l *loop) restoreHooks(a RestoreHooks) {
	for _, old := range l.hooks {
		old.group.Cancel(errJobOver)
	}
	l.hooksBefore = slices.DeleteFunc(append(l.hooksBefore, l.hooks...), func(h *hook) bool { return len(h.group.Live()) == 0 })
	l.hooks = nil
	for _, s := range a.Hooks {
		h := startHook(l.m.group.Context(), s.Name, func(ctx context.Context) (operator.MasterHook, error) { return l.newHook(ctx, s.Name) },
			func(ev Event) { l.m.inbox.Post(happened{ev}) })
		h.requests.Post(hookRequest{restore: &hookRestored{run: a.Run, checkpoint: a.Checkpoint, state: s.State}})
		l.hooks = append(l.hooks, h)
	}
}

// leaveHooks ends the hooks with the job. Those that do not end are abandoned.
func (l *loop) leaveHooks() {
	all := append(l.hooksBefore, l.hooks...)
	for _, h := range all {
		h.group.Cancel(errJobOver)
	}
	ctx, cancel := context.WithTimeout(context.Background(), enumeratorStop)
	defer cancel()
	for _, h := range all {
		var stuck *group.StuckError
		if errors.As(h.group.Stop(ctx), &stuck) {
			l.log.Warn("master hook does not end; it is abandoned", zap.String("hook", h.name))
		}
	}
}

// newHook makes a hook of a build of its own. It runs on the hook's goroutine.
func (l *loop) newHook(ctx context.Context, name string) (operator.MasterHook, error) {
	program, err := buildProgram(ctx, l.deps.Catalog, l.spec, l.deps.BuildTimeout)
	if err != nil {
		return nil, err
	}
	p, ok := program.(operator.HookProgram)
	if !ok {
		return nil, fmt.Errorf("the program makes no hooks")
	}
	return p.NewHook(name)
}

// hookStates are the states of the job's hooks in a snapshot, empty for those that it
// does not know.
func hookStates(names []string, s *snapshotmeta.Snapshot) []snapshotmeta.Hook {
	states := make([]snapshotmeta.Hook, len(names))
	for i, name := range names {
		states[i].Name = name
		if s == nil {
			continue
		}
		for _, h := range s.Header.Hooks {
			if h.Name == name {
				states[i].State = h.State
			}
		}
	}
	return states
}
