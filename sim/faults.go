package sim

import (
	"fmt"
	"time"
)

// What goes wrong here, and what must be survived.
//
//   - Links: delivery is late, and links overtake each other; never frames of one
//     link. A pair of hosts is cut, which both learn of, sooner or later; or one
//     direction of it stalls, which nobody is told. What was on the way is lost with
//     its connection.
//   - Storage: a call is slow, hangs for a while, fails before it had effect, or has
//     effect and its answer is lost. All calls of a process fail for a while.
//   - Registry: the same; besides, a leader is overtaken, and learns of it at once, or later,
//     or by a write that is refused.
//   - Processes: a TaskManager or JobManager is killed, loudly (its peers' connections
//     break) or silently (they hear nothing more); it comes back later, under another
//     incarnation. It is paused: nothing of it gets out or in for a while, and then it
//     goes on as if nothing had been.
//   - User code: an operator fails, or panics.
//   - Time: leaps ahead by many seconds, past timeouts and leases.
//
// Always: the state in each completed checkpoint is exactly what its sources'
// positions say; the chain of completed checkpoints only grows; nobody is told that a
// checkpoint is complete before it is a link, nor both that it is complete and that
// it was aborted; no file of a retained link is missing; a process that was killed
// ends by itself at once.
//
// After the last fault is healed: the job ends with the exact answer within
// [healBound] of simulated time, whatever happened before.
//
// Not survived, and not tried: a disk that loses what was committed, a registry that
// forgets, a process that lies.

// Kind is a kind of fault.
type Kind string

// Kinds of faults that occur by themselves; what a call of storage or registry
// suffers is drawn for each call (plan.go).
const (
	KillTaskManager Kind = "kill taskmanager"
	KillJobManager  Kind = "kill jobmanager"
	Pause           Kind = "pause"
	Cut             Kind = "cut"
	Stall           Kind = "stall"
	DiskOutage      Kind = "disk outage"
	DiskHang        Kind = "disk hang"
	RegistryHang    Kind = "registry hang"
	Overtake        Kind = "overtake leader"
	Expire          Kind = "expire leader"
	UserError       Kind = "user error"
	UserPanic       Kind = "user panic"
	Leap            Kind = "leap"
)

// kinds are all of them, in the order in which seeds draw.
var kinds = []Kind{KillTaskManager, KillJobManager, Pause, Cut, Stall, DiskOutage, DiskHang, RegistryHang, Overtake, Expire, UserError, UserPanic, Leap}

// inject does one fault of a kind that the plan has. It may find nothing to do.
func (w *World) inject(k Kind) {
	d := w.duration(50*time.Millisecond, 12*time.Second)
	switch k {
	case KillTaskManager:
		w.kill(w.someRunning(w.tms), w.chance(0.25), k)
	case KillJobManager:
		w.kill(w.someRunning(w.jms), w.chance(0.25), k)
	case Pause:
		if p := w.someRunning(append(w.tms, w.jms...)); p != nil {
			p.pausedUntil = w.now().Add(d)
			w.fault(k, "%s for %s", p.name, d)
		}
	case Cut:
		a, b := w.twoHosts()
		w.cutUntil(a, b, w.now().Add(d))
		w.fault(k, "%s | %s for %s", a, b, d)
	case Stall:
		a, b := w.twoHosts()
		w.stalled[direction{a, b}] = w.now().Add(d)
		w.fault(k, "%s > %s for %s", a, b, d)
	case DiskOutage, DiskHang, RegistryHang:
		if p := w.someRunning(append(w.tms, w.jms...)); p != nil {
			p.trouble[k] = w.now().Add(d)
			w.fault(k, "%s for %s", p.name, d)
		}
	case Overtake:
		w.registry.OvertakeLeader()
		d = w.duration(time.Second, 20*time.Second)
		w.noticeAt = w.now().Add(d)
		if leader := w.oracle.leader(); leader != nil && w.chance(0.5) {
			leader.trouble[RegistryHang] = w.noticeAt // not by a write that is refused either
		}
		w.fault(k, "unnoticed for %s", d)
	case Expire:
		w.registry.ExpireLeader()
		w.fault(k, "")
	case UserError, UserPanic:
		w.job.fail(k == UserPanic, w.rng.IntN(200))
		w.fault(k, "soon")
	case Leap:
		w.fault(k, "%s", d)
		w.pass(d)
	}
}

// fault notes a fault in trace and marks.
func (w *World) fault(k Kind, format string, args ...any) {
	w.marks.add(string(k))
	w.faults++
	w.trace("fault", "%s %s%s", k, fmt.Sprintf(format, args...), w.window())
}

// window says which moment of a checkpoint's life it is now, and whether there is one.
func (w *World) window() string {
	switch pending, linked := w.oracle.moments(); {
	case linked != 0:
		return fmt.Sprintf(" (linked %d, not notified)", linked)
	case pending != 0:
		return fmt.Sprintf(" (pending %d)", pending)
	}
	return ""
}

// heal ends all faults and brings every process back.
func (w *World) heal() {
	clear(w.stalled)
	for _, p := range append(w.tms, w.jms...) {
		p.pausedUntil = time.Time{}
		clear(p.trouble)
	}
	for pair := range w.cuts {
		w.network.Heal(pair.from, pair.to)
	}
	clear(w.cuts)
	w.job.heal()
	w.healed, w.healedAt = true, w.age()
	w.trace("fault", "all healed")
}

// healDue ends what has lasted long enough, and starts processes that are due.
func (w *World) healDue() {
	now := w.now()
	if !w.noticeAt.IsZero() && (w.healed || now.After(w.noticeAt)) {
		w.noticeAt = time.Time{}
		for _, p := range w.jms {
			if i := p.running(); i != nil {
				i.reg.Notice()
			}
		}
	}
	for pair, until := range w.cuts {
		if !now.Before(until) {
			w.network.Heal(pair.from, pair.to)
			delete(w.cuts, pair)
		}
	}
	for d, until := range w.stalled {
		if !now.Before(until) {
			delete(w.stalled, d)
		}
	}
	for _, p := range append(w.jms, w.tms...) {
		if p.dead() && (w.healed || !now.Before(p.restartAt)) {
			w.start(p)
		}
	}
}
