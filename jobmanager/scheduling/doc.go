// Package scheduling says which subtask goes into which slot.
//
// It owns slot sharing and the placement of one job. It must not know which slots
// exist (resource) nor how tasks are deployed.
//
// A job's core makes a [Scheduler] of its plan, asks [Scheduler.Missing] what slots
// it needs, brings those it got to [Scheduler.Grant], and finds each subtask's place
// with [Scheduler.Place]. [Scheduler.Lose] drops the slots of a lost TaskManager.
//
// Invariants:
//
//  1. Slot i of a job holds subtask i of each vertex that has one; so a job needs as
//     many slots as its largest parallelism, and chains of forward edges stay in one
//     process.
//  2. Each subtask is placed in exactly one slot, or the shortage is known.
//  3. A slot stays the job's until its TaskManager is lost or the job ends, so a
//     restarted subtask returns to where it was; a slot that replaces a lost one is
//     looked for on the TaskManager that had it.
//
// Pure: no goroutine, lock, clock, context or I/O. Read scheduler.go.
package scheduling
