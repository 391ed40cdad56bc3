package operator

import "context"

// MasterHook takes part in a job's checkpoints in the JobManager, for something outside
// that belongs to them as a whole: the position of a system that feeds a source, a
// marker in a table (behaviour §3). It runs on a goroutine of its own, one call at a
// time; one that hangs or panics fails checkpoints of its job, and no other job.
type MasterHook interface {
	// Restore is called before the tasks of the whole job are deployed: with the state
	// that the snapshot has of this hook, or with checkpoint 0 if the job starts from
	// none. It is not called if a part of the job is restarted. An error fails the job,
	// which is then restarted as its strategy says.
	Restore(ctx context.Context, checkpoint int64, state []byte) error
	// Trigger is called when a checkpoint begins, before any task is triggered. What it
	// returns is the hook's state in the checkpoint, at most 1 MiB. An error fails the
	// checkpoint.
	Trigger(ctx context.Context, checkpoint int64) (state []byte, err error)
	// NotifyComplete tells of a completed checkpoint. Not every one is told of.
	NotifyComplete(checkpoint int64)
	// Close ends it.
	Close() error
}

// HookProgram is a [Program] that has master hooks. Its logical graph names them.
type HookProgram interface {
	NewHook(name string) (MasterHook, error)
}
