// Package local carries the sessions of package rpc within one process, for
// clusters in one process and for tests.
//
// It owns two queues and two goroutines per session and must not know what the
// messages mean. Messages are handed over as they are, so neither side may change
// one after sending it or on receiving it.
//
// Invariants are those of package rpc: order, at most once, Closed once and last,
// Send never waits, a queue of more than [MaxQueued] messages ends the session.
//
// end.mu is a leaf lock. Read network.go.
package local
