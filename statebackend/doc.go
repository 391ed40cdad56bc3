// Package statebackend is the contract between an operator and the keyed state
// it keeps, and between that state and a snapshot of it.
//
// It owns the words: [Backend], [Table], [Descriptor], [Snapshot]. It must not
// know tasks, checkpoint coordination or the network. Implementations live in
// sub-packages and share the suite in statetest.
//
// A caller makes a backend for one operator's subtask, restores it, asks for its
// tables, and then uses them from one goroutine. For a snapshot it calls
// [Backend.Snapshot] on that goroutine, which is short, and hands the result to
// another one, which writes it.
//
// Invariants:
//
//  1. No slice returned by a table outlives the next call on the same backend.
//  2. A snapshot is immutable: nothing written after [Backend.Snapshot] returned
//     is in it, everything before is.
//  3. Every snapshot is released exactly once, written or not; at least two may
//     be outstanding.
//  4. Keys outside the backend's key-group range are a bug of the caller.
//
// Backends have no goroutines of their own here and no locks in a call on a
// record. Read backend.go first.
package statebackend
