// Package etcdserver runs an etcd of one member in the JobManager's process, for
// clusters with exactly one JobManager.
//
// It owns the data directory, the lock that keeps a second JobManager out, and the
// server's life; it must not know what is kept in it. Only daemon imports it.
//
// [Start] locks, starts and waits until the server answers; [Server.Client] is the way
// to it, for it listens on no port; [Server.Watch] returns when it cannot go on;
// [Server.Close] is bounded in time.
//
// Invariants:
//
//  1. One process uses a data directory: the lock is taken before anything in it is
//     looked at.
//  2. What etcd would end the process for is an error: of Start, which names a damaged,
//     foreign or full directory, and then of Watch, whose caller must end the process:
//     nothing may go on without its log. The goroutine of etcd's that met it ends at once.
//  3. Nothing is acknowledged before it is synced to disk, unless a test says so.
//
// Goroutines: etcd's own, "start" for the time of a Start, and "close" for the time of a Close. No locks. Read
// server.go.
package etcdserver
