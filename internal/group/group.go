package group

import (
	"context"
	"errors"
	"runtime/pprof"
	"slices"
	"sync"
)

// Group is a set of goroutines with one owner. Any goroutine may call its
// methods, except that only goroutines outside the group may wait for it.
type Group struct {
	name string
	// ctx is what the group's goroutines are given. That it is a field is the one
	// exception to the rule: it is the group's life, not a call's.
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu struct {
		sync.Mutex
		stopped bool                // nothing starts any more
		err     error               // the first error
		live    map[*member]bool    // goroutines that run
		idle    chan struct{}       // closed when live becomes empty; nil while it is
		timers  map[*Timer]struct{} // armed
	}
}

// member is one goroutine of a group.
type member struct {
	name string
}

// New returns a group whose goroutines' contexts derive from ctx. The name is for
// profiles and errors, for example "job/4f2a".
func New(ctx context.Context, name string) *Group {
	g := &Group{name: name}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.mu.live = make(map[*member]bool)
	g.mu.timers = make(map[*Timer]struct{})
	return g
}

// Name is the group's name.
func (g *Group) Name() string { return g.name }

// Context is the context of the group's goroutines: done when the group is
// cancelled or stopped, or when one of its goroutines failed; context.Cause says why.
func (g *Group) Context() context.Context { return g.ctx }

// Go starts fn on a goroutine of this name. It returns [ErrStopped], and does not
// start it, once the group is stopped or its context is done. An error that fn
// returns ends the group.
func (g *Group) Go(name string, fn func(ctx context.Context) error) error {
	return g.start(name, fn, nil)
}

// GoThen is [Group.Go] for a goroutine whose failure its owner handles: its error
// or [*PanicError] is given to done, on the same goroutine and as its last act, and
// does not end the group. A panic of done does.
func (g *Group) GoThen(name string, fn func(ctx context.Context) error, done func(err error)) error {
	return g.start(name, fn, done)
}

func (g *Group) start(name string, fn func(ctx context.Context) error, done func(err error)) error {
	m, ok := g.enter(name)
	if !ok {
		return ErrStopped
	}
	go g.run(m, fn, done)
	return nil
}

// enter adds a member, unless the group is stopped.
func (g *Group) enter(name string) (*member, bool) {
	m := &member{name: name}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.stopped || g.ctx.Err() != nil {
		return nil, false
	}
	g.enterLocked(m)
	return m, true
}

func (g *Group) enterLocked(m *member) {
	if len(g.mu.live) == 0 {
		g.mu.idle = make(chan struct{})
	}
	g.mu.live[m] = true
}

// run is the body of every goroutine. The member leaves in a deferred call, since
// fn may end the goroutine.
func (g *Group) run(m *member, fn func(ctx context.Context) error, done func(err error)) {
	ctx := pprof.WithLabels(g.ctx, pprof.Labels("group", g.name, "goroutine", m.name))
	pprof.SetGoroutineLabels(ctx)

	err := ErrExited
	defer func() {
		if done != nil {
			result := err
			err = ErrExited
			defer func() { g.leave(m, err) }()
			err = Catch(func() error { done(result); return nil })
			return
		}
		g.leave(m, err)
	}()
	err = Catch(func() error { return fn(ctx) })
}

// leave removes a member and keeps its error, if it is the first one.
func (g *Group) leave(m *member, err error) {
	if err != nil {
		g.fail(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.live, m)
	if len(g.mu.live) == 0 {
		close(g.mu.idle)
		g.mu.idle = nil
	}
}

// fail keeps the error and cancels the group with it.
func (g *Group) fail(err error) {
	if cause := context.Cause(g.ctx); cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
		return // it only says that the group was cancelled
	}
	g.mu.Lock()
	if g.mu.err == nil {
		g.mu.err = err
	}
	g.mu.Unlock()
	g.Cancel(err)
}

// Cancel begins to stop the group and returns at once: the context is cancelled
// with this cause, timers are stopped, nothing starts any more. It may be called
// from inside the group, and more than once; the first cause stands.
func (g *Group) Cancel(cause error) {
	g.mu.Lock()
	g.mu.stopped = true
	timers := g.mu.timers
	g.mu.timers = make(map[*Timer]struct{})
	g.mu.Unlock()

	g.cancel(cause)
	for t := range timers {
		t.timer.Stop()
	}
}

// Wait returns when no goroutine of the group runs, with the group's first error.
// It stops nothing: a group that has not been cancelled may be used again.
func (g *Group) Wait() error {
	for {
		idle, err := g.state()
		if idle == nil {
			return err
		}
		<-idle
	}
}

// Stop cancels the group with [ErrStopped] and waits until all its goroutines have
// ended; it returns the group's first error. If ctx is done earlier, it returns a
// [*StuckError] with the names of those that still run. It is idempotent.
func (g *Group) Stop(ctx context.Context) error {
	g.Cancel(ErrStopped)
	for {
		idle, err := g.state()
		if idle == nil {
			return err
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return g.stuck(context.Cause(ctx))
		}
	}
}

// stuck is the answer of a Stop that gave up, unless the last goroutine has ended
// in the meantime.
func (g *Group) stuck(cause error) error {
	names := g.Live()
	if len(names) == 0 {
		return g.Err()
	}
	return &StuckError{Group: g.name, Goroutines: names, Cause: cause}
}

// Err returns the first error of a goroutine so far.
func (g *Group) Err() error {
	_, err := g.state()
	return err
}

// Live returns the names of the goroutines that run now, sorted.
func (g *Group) Live() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := make([]string, 0, len(g.mu.live))
	for m := range g.mu.live {
		names = append(names, m.name)
	}
	slices.Sort(names)
	return names
}

func (g *Group) state() (idle chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.idle, g.mu.err
}
