// Package faulty wraps a blobstore.Store and makes it slow, failing or dead.
//
// It owns the moments at which a call can go wrong: before it takes effect, or after,
// when only the answer is lost. It must not decide which calls do: that is the
// [Hook]'s, so that a simulator can.
//
// A wrapper stands for one process's connection to the store: [Store.Kill] ends it,
// with all calls that are blocked in the hook, and leaves the store to the others.
//
// No goroutines; one lock, Store.mu, a leaf, not held while the hook runs. Read
// store.go.
package faulty
