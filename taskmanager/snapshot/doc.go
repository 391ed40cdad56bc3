// Package snapshot is one subtask's part in a checkpoint.
//
// It owns the procedure of a snapshot in a task ([Coordinator]; behaviour §14),
// what a task remembers of checkpoints it was told of (behaviour §8), and the
// workers that write what was captured ([Executor]). It must not know how barriers
// are aligned, what the JobManager decides, or what is in the state.
//
// The task's goroutine calls a Coordinator: [Coordinator.Trigger] when the barriers
// are in or a trigger came, [Coordinator.Abort] when alignment gave up,
// [Coordinator.NotifyComplete] and [Coordinator.NotifyAborted] for notifications, and
// [Coordinator.Done] with what a worker posted. [Coordinator.Close] ends its asynchronous
// parts.
//
// Between two records a Trigger does, in this order: decides whether the checkpoint
// is still wanted; lets operators emit; sends the barrier on, so that downstream
// starts early; captures state; hands what was captured to a worker. The worker
// writes one file per checkpoint and subtask, or none if all is small, and posts
// the result; only then is the checkpoint acknowledged.
//
// Invariants:
//
//  1. A checkpoint is acknowledged or declined at most once, and acknowledged only
//     after its state was durable.
//  2. Ids only grow: a trigger that is not newer than the last one started or
//     aborted does nothing at all.
//  3. The barrier of a checkpoint, or its cancellation marker, is sent at most once.
//  4. Every captured backend snapshot is released exactly once, whatever happens.
//  5. State that will not be acknowledged is deleted; what an acknowledgement
//     named is never (DECISIONS 9).
//
// Goroutines: snapshot/worker, a bounded number per TaskManager. They share nothing
// with the task but the result they post. Read coordinator.go, then async.go.
package snapshot
