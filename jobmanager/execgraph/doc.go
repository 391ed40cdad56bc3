// Package execgraph is the state of one job's execution: its vertices, subtasks
// and attempts.
//
// It owns which attempt of each subtask is current, its state, and the legal
// changes of state. It must not know how TaskManagers are reached, why a task is
// started or cancelled, or what a checkpoint is.
//
// A job's core makes a [Graph] of the physical plan, and feeds it commands
// (Create, Assign, Deploy, Cancel) and what TaskManagers say (Report, Lose); it
// carries out the actions. It reads with [Graph.Current] and [Graph.Executions].
//
// Invariants:
//
//  1. At most one attempt of a subtask is not final; a new one is created only
//     after the old one is final.
//  2. The number N of an attempt grows with each one of its subtask within an
//     epoch and is never used twice.
//  3. A state only moves forward, and a final one never changes.
//  4. An event that names another attempt than the current one changes nothing and
//     is answered by a Note; a final report is answered by a Forget as well, so
//     that it is not repeated.
//  5. An attempt whose cancellation was asked for ends as CANCELED whatever its
//     TaskManager says in the end.
//
// Pure: no goroutine, lock, clock, context or I/O. Read graph.go, then step.go.
package execgraph
