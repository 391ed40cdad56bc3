// Package generator is a source that makes its records up, for tests, demos and
// benchmarks.
//
// It owns the numbering of the records: 0, 1, 2 and so on, divided among splits so
// that every number is made once and a restored reader goes on with exactly the
// next one. It must not know what the records are: a function of the caller's
// makes each from its number.
//
//	in := flow.From(g, "numbers", generator.New(generator.Options{Rate: 1000}, newRecord))
//
// [ReadProgress] reads a split's position out of a checkpoint.
//
// Invariants:
//
//  1. Split i of n emits the numbers i, i+n, i+2n, … in this order. The number of
//     splits is the parallelism of the job's first start; after a change of
//     parallelism a reader may have several or none.
//  2. A reader never waits: when no record is due it arms a timer and says so.
//
// One group for the timer's goroutine (internal/group), ended by Close. No locks.
// Read generator.go first.
package generator
