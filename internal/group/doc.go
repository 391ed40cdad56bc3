// Package group starts goroutines; nobody else does.
//
// It owns the life of every goroutine of a process: its name, its pprof labels,
// its context, its end, its panic. It must not know what goroutines do.
//
// An owner makes a [Group], starts goroutines with [Group.Go], and ends them with
// [Group.Stop]. A goroutine that returns an error, or panics, ends the group: the
// others' context is cancelled with that error as the cause, and [Group.Wait] and
// [Group.Stop] return it. If one goroutine's failure must not end the others, its
// owner starts it with [Group.GoThen] and is given the result. Timers that call
// functions ([Group.AfterFunc], [Group.AfterDone]) belong here too, since the
// function runs on a goroutine of its own.
//
//	g := group.New(ctx, "link/"+peer)
//	g.Go("reader", conn.read)
//	g.Go("writer", conn.write)
//	...
//	err := g.Stop(ctx) // ctx bounds the wait
//
// Whose code may panic, and what follows, is the owner's to decide: a task's
// owner turns the [*PanicError] into the task's failure, a daemon ends the
// process. [Catch] does the same for a single call.
//
// Invariants:
//
//  1. After Stop or Cancel, or after an error, nothing starts any more: Go
//     answers [ErrStopped], timers fire into nothing.
//  2. When Wait returns, no goroutine of the group runs, and none will be started
//     by a timer that fired before Stop.
//  3. The first error is kept; a goroutine that only reports the cancellation of a
//     group that has been stopped is no error.
//  4. Stop returns at the deadline of its context and names what still runs.
//
// One lock, Group.mu, a leaf: it is never held over a wait or a callback, so groups
// work in testing/synctest bubbles. Read group.go first.
package group
