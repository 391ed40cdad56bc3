// Package localfs is the seam to a process's local files: its data directory.
//
// It owns whole small files that are written once and the lock that keeps a second
// process out; it must not know what the files mean. State backends that keep local
// files have an interface of their own for them.
//
// [Dir] is the real thing, [Memory] the one for tests and simulation; both pass the
// tests here. Invariants:
//
//  1. A file is visible only whole and durable; what exists is never changed.
//  2. A lock has one holder at a time and ends with the process.
//
// No goroutines; Memory has one lock, a leaf. Read localfs.go.
package localfs
