// Package failover decides what is restarted after a failure, when, and how often.
//
// It owns [RestartStrategy] with its kinds and [Regions]. It must not know how
// tasks are cancelled or deployed. jobmaster.Core asks the strategy once for each
// failover (not for failures while one is under way), and restarts the region of
// the vertex that failed after the delay.
//
// Invariants:
//
//  1. A failure that says NoRetry is never retried.
//  2. Regions are closed under edges: whoever exchanges records restarts together.
//
// Pure: no goroutine, lock, clock or I/O. Read restart_strategy.go.
package failover
