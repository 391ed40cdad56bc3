// Package fs keeps blobs as files below one directory, which several processes and
// hosts may share.
//
// It owns how a file becomes durable and visible in one step; it must not know what
// blobs are for. [Open] is for the store a process writes to, [OpenExisting] for one
// that is only read, for example another cluster's.
//
// Invariants:
//
//  1. Commit: temporary file, fsync, link(2), which fails if the name exists, fsync of
//     the directory and of those it had to make. No rename: it would overwrite.
//  2. Temporary files lie in one directory, TempDir, which is not listed. Whoever opens
//     the store removes those older than TempAge, and only them: younger ones may be
//     another process's.
//  3. No name and no symbolic link leads out of the directory.
//  4. Directories that become empty by a delete are removed; a create that races with
//     that makes them anew.
//
// No goroutines, no locks. Read store.go, then writer.go.
package fs
