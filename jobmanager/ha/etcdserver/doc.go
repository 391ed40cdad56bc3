// Package etcdserver runs an etcd of one member in the JobManager's process, for
// clusters with exactly one JobManager.
//
// It owns the data directory, the lock that keeps a second JobManager out, and the
// server's life; it must not know what is kept in it. Only daemon imports it.
//
// [Start] locks, starts and waits until the server answers; [Server.Client] is the way
// to it, for it listens on no port; [Server.Close] is bounded in time.
//
// Invariants:
//
//  1. One process uses a data directory: the lock is taken before anything in it is
//     looked at.
//  2. What etcd would end the process for, while it starts, is an error of Start: a
//     damaged or foreign directory is named in it. After Start it ends the process, as
//     it should: nothing may go on without its log.
//  3. Nothing is acknowledged before it is synced to disk, unless a test says so.
//
// Goroutines: etcd's own, and "close" for the time of a Close. No locks. Read
// server.go.
package etcdserver
