// Package partition is a task's output: elements appended to segments, one queue of
// segments and events per consumer.
//
// It owns [ResultPartition], which chooses the subpartition of a record and fills
// segments, and [Subpartition], the queue that a consumer reads. It must not know
// who reads, over what, or what an event means beyond its [wire.DataType] and, of a
// barrier, its checkpoint and options.
//
// The task calls Emit or, with a user's partitioner, EmitTo, and Watermark, Status,
// BroadcastEvent and BroadcastBarrier, all from its one goroutine. Where a keyed record
// fits into the segment, [Appender] encodes it there. It asks Available
// before it takes more input, calls FlushIfRequested between records and FlushAll
// before it sleeps (DECISIONS 19). A reader calls
// [Subpartition.Attach] once, then [Subpartition.Poll] until nothing is available;
// from then on it is notified once when something is. A barrier overtakes, stops the
// subpartition, or both in turn (TimeoutBarrier, or the reader's ToHead); what it passes
// is captured by exactly one side.
//
// # Invariants
//
//  1. A record is appended without a lock and without an allocation; the locks of
//     queue and pool are taken per segment.
//  2. Only the task publishes: a reader sees committed bytes of a finished segment, or
//     of an unfinished one for which a flush was asked (behaviour §18).
//  3. After a blocking event was polled nothing is, until Resume.
//  4. What is added to a released subpartition is dropped; after Fail or Cancel,
//     elements are dropped silently and nothing waits.
//  5. Priority events stand before all others, in the order they were added.
//  6. A timeoutable barrier is decided once in each subpartition: polled, timed out by
//     the task, moved by the reader, aborted, or gone with its reader. The data before it
//     is captured by who let it overtake, and by nobody if it was polled in its place.
//
// No goroutines. Locks: Subpartition.mu before the pool's; readers are notified after
// unlocking. Read subpartition.go and overtake.go, then result_partition.go and
// barrier.go.
package partition
