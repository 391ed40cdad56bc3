// Package lifecycle is the life of one execution attempt in a TaskManager.
//
// It owns the states of an attempt between its deployment and its one final
// state, as a [Task] that takes events and answers with actions. It must not know
// goroutines, sessions or what a task does.
//
// The owner (the loop of a TaskManager) makes a Task with [New], steps it with what
// it is told to do ([Deploy], [Cancel]) and with what the task's goroutine tells it
// ([Restored], [Finish], [Fail], [Exited]), and carries out the actions in order.
// Exited is always the goroutine's last word, whatever it said before.
//
// Invariants:
//
//  1. Exactly one final state is reported, as the last report.
//  2. Start is said at most once, Release exactly once, with the final report, and
//     not before the goroutine has ended: what the attempt holds is still in use
//     until then.
//  3. The first cause stands: a cancelled attempt ends CANCELED whatever goes wrong
//     while it stops, a failed one ends FAILED with its first failure.
//  4. Step is total: events that come twice or too late are answered by a Note.
//
// Pure: no goroutine, lock, clock or I/O. Read task.go.
package lifecycle
