// Package mem keeps blobs in memory, for tests, simulation and a cluster in one
// process.
//
// It owns the blobs; it must not know who uses them. One [Store] is shared by all
// processes of a simulated cluster, each through a blobstore/faulty wrapper of its
// own, which is what is killed with the process. A blob is visible after Commit and
// then survives every kill, as on a disk that was synced; what was not committed is
// gone.
//
// No goroutines; one lock, Store.mu, a leaf. Read store.go.
package mem
