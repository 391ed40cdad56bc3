package task

import (
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// ending is how far a task has come on the way to its end (behaviour §12, §13). It ends
// when its inputs have, and
//
//   - a task that has reached the end of its data waits until a checkpoint is complete
//     that it took after that, so that what it commits then is committed;
//   - one that stops at a synchronous savepoint waits until that one is complete.
type ending struct {
	data    bool              // the end of its data was sent on; operators do no work any more
	stop    weir.CheckpointID // the synchronous savepoint that the task stops at
	covered weir.CheckpointID // the first checkpoint that was started after the end of data
	done    bool              // what is waited for is complete
}

// completed notes that a checkpoint is complete.
func (e *ending) completed(id weir.CheckpointID) {
	switch {
	case id == weir.NoCheckpoint:
	case e.stop != weir.NoCheckpoint:
		e.done = e.done || id == e.stop
	case e.covered != weir.NoCheckpoint && id >= e.covered:
		e.done = true
	}
}

// endData ends the task's data and says so downstream. With a drain, also at the end by
// itself, operators emit their last records before; those that had done so in the
// snapshot that the task starts from have none.
func (t *Task) endData(drain bool) error {
	t.ending.data = true
	if drain {
		if !t.d.Finished {
			if err := t.chain.Do("finishing", operator.Chain.Finish); err != nil {
				return err
			}
		}
		t.snapshot.OperatorsFinished()
	}
	t.broadcast(wire.TypeEvent, wire.EndOfData{Drain: drain})
	t.logger.Debug("task has reached the end of its data")
	if drain && t.awaitsCheckpoint() {
		t.owner.Send(rpc.EndOfData{Attempt: t.d.Attempt})
	}
	return nil
}

// awaitsCheckpoint says whether a task that reaches the end of its data waits for a last
// checkpoint.
func (t *Task) awaitsCheckpoint() bool {
	return t.d.Options.Checkpointing && t.d.Options.CheckpointsAfterTasksFinish && !planted.Is(planted.LastNotAwaited)
}

// endIfDone ends the outputs, if nothing is waited for any more. What consumers have not
// read yet stays readable. The inputs have ended, or there are none.
func (t *Task) endIfDone() bool {
	e := &t.ending
	if !e.data || (e.stop != weir.NoCheckpoint || t.awaitsCheckpoint()) && !e.done {
		return false
	}
	t.broadcast(wire.TypeEvent, wire.EndOfPartition{})
	t.ended = true
	t.logger.Debug("task has processed all its input")
	return true
}

// stopReading makes a source stop at the barrier of a synchronous savepoint, as do tasks
// whose producers have ended. Everybody else learns from their inputs that data has
// ended.
func (t *Task) stopReading(b weir.Barrier) error {
	if t.ending.data || b.ID <= t.snapshot.Last() {
		return nil
	}
	drain := b.Options.Kind.Drains()
	if drain {
		err := t.chain.Do("advancing the watermark", func(c operator.Chain) error { return c.Watermark(weir.MaxWatermark) })
		if err != nil {
			return err
		}
	}
	return t.endData(drain)
}

// take takes the task's part in a snapshot.
func (t *Task) take(ctx context.Context, b weir.Barrier, m weir.CheckpointMetrics) error {
	sync := b.Options.Kind.IsSynchronous()
	if sync && !t.ending.data {
		return t.stopFailure("its barrier came before the end of data")
	}
	known := b.ID <= t.snapshot.Last()
	if err := t.snapshot.Trigger(ctx, b, m); err != nil || known {
		return err
	}
	if !t.snapshot.Started(b.ID) {
		if sync {
			return t.stopFailure(errAborted.Error())
		}
		return nil
	}
	switch e := &t.ending; {
	case sync:
		e.stop, e.done = b.ID, false
	case e.data && e.covered == weir.NoCheckpoint:
		e.covered = b.ID
	}
	return nil
}

// onComplete takes the JobManager's word that a checkpoint is complete.
func (t *Task) onComplete(id weir.CheckpointID) error {
	if err := t.snapshot.NotifyComplete(id); err != nil {
		return err
	}
	t.ending.completed(id)
	return nil
}

// stopFailed fails the task if it has stopped for a savepoint that was aborted: it cannot
// go on where it stopped.
func (t *Task) stopFailed(id weir.CheckpointID) error {
	if id == weir.NoCheckpoint || id != t.ending.stop || t.ending.done {
		return nil
	}
	return t.stopFailure(errAborted.Error())
}

func (t *Task) stopFailure(why string) error {
	return &weir.Failure{Message: "stop with savepoint failed: " + why, Subtask: t.d.Attempt.Subtask}
}
