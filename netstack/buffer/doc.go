// Package buffer owns the memory of the data path: segments of 32 KiB and who may
// hold them.
//
// It must not know channels, frames or what the bytes mean.
//
// A process makes one [NetworkPool] of a fixed number of segments. Every result
// partition and every input gate gets a [LocalPool] from it when it is deployed:
// its smallest size is set aside at once, or the deployment is refused with
// [ErrInsufficientBuffers]; between smallest and largest size a pool grows with
// what nobody else needs. A [Buffer] that was requested is filled by one
// goroutine and read by others through a [View] of the bytes committed so far.
// Buffers are reference-counted: the last Release returns one to whoever
// [Buffer.SetRecycler] named, at first the pool it came from.
//
// # Invariants
//
//  1. What was set aside for a pool is owed to it by nobody: it need not wait for
//     others to release buffers, except right after it was made, while buffers
//     that others had borrowed are still on their way back; those go to it first.
//  2. Bytes below the committed length never change until the last reference is
//     gone; bytes above it are the filling goroutine's alone.
//  3. A buffer is referenced by moving a View, never by sharing one.
//  4. A pool counts every buffer it gave out; when a closed pool has them all back
//     it gives its reservation up, and a closed NetworkPool has none out.
//  5. What exceeds a pool (LocalOptions.Exceeds) is bounded for the process, counted until it
//     is released, and not used again.
//  6. In invariant builds a recycled segment is overwritten, so that whoever kept
//     bytes of it without a reference is found out.
//
// No goroutines. Locks: LocalPool.mu before NetworkPool.mu; listeners are called
// after unlocking. Read buffer.go first, then local_pool.go.
package buffer
