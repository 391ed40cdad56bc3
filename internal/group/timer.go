package group

import (
	"context"
	"time"
)

// Timer calls a function once, on a goroutine of its group. It is made by
// [Group.AfterFunc].
type Timer struct {
	group *Group
	timer *time.Timer
}

// AfterFunc calls fn on a goroutine of this name after d, unless the timer or the
// group is stopped first. A panic of fn ends the group. On a stopped group the timer
// never fires.
func (g *Group) AfterFunc(name string, d time.Duration, fn func(ctx context.Context)) *Timer {
	t := &Timer{group: g}
	body := func(ctx context.Context) error { fn(ctx); return nil }
	fire := func() {
		if m, ok := g.enterFired(t, name); ok {
			g.run(m, body, nil)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.stopped {
		t.timer = time.NewTimer(d)
		t.timer.Stop()
		return t
	}
	t.timer = time.AfterFunc(d, fire)
	g.mu.timers[t] = struct{}{}
	return t
}

// enterFired is enter for a timer's goroutine; the timer is not armed any more.
func (g *Group) enterFired(t *Timer, name string) (*member, bool) {
	m := &member{name: name}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.stopped || g.ctx.Err() != nil {
		return nil, false
	}
	delete(g.mu.timers, t)
	g.enterLocked(m)
	return m, true
}

// Stop disarms the timer. It returns false if the timer had fired or been stopped;
// the function may then still be running.
func (t *Timer) Stop() bool {
	g := t.group
	g.mu.Lock()
	delete(g.mu.timers, t)
	g.mu.Unlock()
	return t.timer.Stop()
}

// Reset arms the timer anew, to fire after d. It returns whether the timer had been
// armed. On a stopped group it does nothing.
func (t *Timer) Reset(d time.Duration) bool {
	g := t.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.stopped {
		return false
	}
	g.mu.timers[t] = struct{}{}
	return t.timer.Reset(d)
}

// AfterDone calls fn on a goroutine of this name once ctx is done. The function it
// returns calls that off, and says whether it was in time. On a group that is
// stopped before ctx is done, fn is not called. A panic of fn ends the group.
func (g *Group) AfterDone(ctx context.Context, name string, fn func()) (stop func() bool) {
	body := func(context.Context) error { fn(); return nil }
	return context.AfterFunc(ctx, func() {
		if m, ok := g.enter(name); ok {
			g.run(m, body, nil)
		}
	})
}
