// Package blobstore is durable bytes under names that are written once.
//
// It owns exclusive creation, reading, listing and deletion of blobs; it must
// not know what a checkpoint is. Names are slash-separated relative paths
// without empty, "." or ".." elements ([CheckName]). Nothing is ever
// overwritten and there is no rename.
//
// Invariants:
//
//  1. A blob is visible under its name only whole and durable, after Commit.
//  2. Of several creators of one name at most one succeeds; the others get
//     [ErrExists].
//  3. An error from Commit may leave the outcome open (the answer was lost);
//     the caller reads until it knows (DECISIONS 8).
//
// Implementations: fs, mem, faulty (a wrapper that fails on purpose); all pass
// storetest. Stores are safe for concurrent use. Read store.go.
package blobstore
