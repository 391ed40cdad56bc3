// Package operator is the contract between a task and the code it runs, and
// between the JobManager and the code of a source that runs there.
//
// It owns the words [Catalog], [Program], [Chain], [Env], [Batch] and
// [Enumerator]. It must not know how tasks are scheduled, and nothing here
// knows the types of records: package flow fuses typed user functions behind
// these interfaces once per attempt, and from then on the runtime hands over
// bytes and gets bytes, or lends the place where they are to be.
//
// A TaskManager asks the catalog to build the program named by a deployment,
// compares the graph's hash, asks for the vertex's chain, opens it, and then
// drives it from the task's goroutine alone.
//
// Invariants:
//
//  1. Everything on a Chain is called from the task's goroutine, one call at a time.
//  2. A program is built anew for every attempt, so captured variables are
//     neither shared between subtasks nor survive a restart (DECISIONS 5).
//  3. A payload in a Batch aliases a garbage-collected block and may be kept,
//     unless the chain asked to borrow (DECISIONS 22).
//  4. A panic in a chain fails the task, with the operator named, not the process.
//
// No goroutines, no locks. Read chain.go, then program.go.
package operator
