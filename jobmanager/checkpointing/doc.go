// Package checkpointing decides when a checkpoint starts, what it needs, and when
// it is done or lost.
//
// It owns [CheckpointCoordinator], one per job, and its parts: the queue of
// requests ([CheckpointRequestDecider]), the periodic scheduler, the plan
// ([CalculatePlan]), [PendingCheckpoint], the list of completed checkpoints
// ([CompletedCheckpointStore]), the files that they share ([SharedStateRegistry]), the
// count of failures, and the statistics of recent snapshots. It must not know RPC,
// storage, or what time it is.
//
// # Use
//
// jobmaster.Core makes a coordinator with [New], tells it with [Restored] what the
// chain holds, and from then on calls [CheckpointCoordinator.Step] with everything
// that happens. Some actions are answered by Core in the same call
// ([CalculatePlan] for [NeedPlan], the event gates for [SnapshotCoordinators]); the
// others go to the shell. A checkpoint walks
//
//	NeedPlan → TakeID → ArmTimer, SnapshotCoordinators → CallHooks → TriggerTasks
//	→ Acknowledged … → WriteMetadata → AddLink → NotifyComplete, DeleteCheckpoint
//
// A savepoint has InitializeLocation before SnapshotCoordinators, and ends with
// WriteMetadata, but for that of a stop, which goes the whole way. Each arrow is
// crossed by the event that reports the end of the action before it. Every action that
// says so is answered by exactly one event.
//
// # Invariants
//
//  1. A checkpoint ends exactly once, with one [CheckpointEnded]: completed, when its
//     link is known to be in the chain (a savepoint: its metadata), or aborted. From
//     [AddLink] to its answer it cannot be aborted, because it may be complete already;
//     see [CheckpointCoordinator.Linking].
//  2. It completes only if every attempt of its plan and every operator coordinator
//     has acknowledged.
//  3. State that is acknowledged belongs to its pending, then to its completed
//     checkpoint. What ends unowned leaves in one [DiscardState] or one
//     [DeleteCheckpoint]. A duplicate, or what another job's attempt sends, is left
//     alone; so is what may be part of a savepoint that was complete before our time,
//     and everything after [Shutdown], or once another leader has overtaken us: gc
//     finds it. A complete savepoint is never deleted.
//  4. [NotifyComplete] carries the permit that the link's answer brought.
//  5. At most one trigger and at most one link are under way at a time.
//  6. Same events, same actions: what comes of iterating over a map is sorted.
//  7. A step costs at most a constant times the number of subtasks, and only steps
//     that name all subtasks cost that much.
//
// Pure: no goroutine, lock, clock, logger or I/O; randomness comes in with [New].
//
// Read event.go and action.go, then coordinator.go, trigger.go and complete.go.
package checkpointing
