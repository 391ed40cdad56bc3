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
// A barrier may overtake what is in flight, at once or when it has waited for too long.
// Then the checkpoint has channel state beside the operators' state: the coordinator
// starts it ([ChannelState]), is told when each side is captured
// ([Coordinator.InputCaptured], [Coordinator.Decided]), and given its end
// ([Coordinator.ChannelState]).
//
// Between two records a Trigger does, in this order: decides whether the checkpoint
// is still wanted; starts its channel state; lets operators emit; sends the barrier on,
// so that downstream starts early; captures state; hands what was captured to a worker.
// The worker writes one file per checkpoint and subtask, or none if all is small, and
// posts that it has. When that and the end of the channel state ([Coordinator.Captured])
// are in, the checkpoint is acknowledged, by whoever brought the last one: the task may be
// in the middle of a long record.
//
// Invariants:
//
//  1. A checkpoint is acknowledged or declined at most once, and acknowledged only
//     after its state and its channel state were durable.
//  2. Ids only grow: a trigger that is not newer than the last one started or
//     aborted does nothing at all.
//  3. The barrier of a checkpoint is sent at most once, and its cancellation marker too.
//  4. Every captured backend snapshot is released exactly once, whatever happens.
//  5. State that will not be acknowledged is deleted; what an acknowledgement
//     named is never (DECISIONS 9).
//  6. Channel state that was started is finished on both sides or aborted. The outputs'
//     timer is armed for the last checkpoint only.
//
// Goroutines: snapshot/worker, a bounded number per TaskManager. They share with the task
// the end of each checkpoint, which has a lock, a leaf, and so has the list of them. Read coordinator.go, then async.go.
package snapshot
