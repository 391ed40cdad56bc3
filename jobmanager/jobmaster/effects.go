package jobmaster

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/jobmanager/resource"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/rpc"
)

// do carries out one action of the core. Nothing here waits: what would goes to a
// pool or to an enumerator's goroutine, and its end comes back as a letter.
func (l *loop) do(action Action) {
	switch a := action.(type) {
	case Send:
		l.send(a)
	case Forget:
		l.forget(a.Attempt)
	case RequestSlots:
		l.deps.Slots.Request(l.m.record.Job, l.spec.CodeID, a.Request, a.Wants)
	case ReturnSlots:
		slots := make([]resource.Slot, len(a.Slots))
		for i, s := range a.Slots {
			slots[i] = resource.Slot{TaskManager: s.TaskManager, Incarnation: s.Incarnation, Index: s.Slot}
		}
		l.deps.Slots.Return(l.m.record.Job, slots)
	case ReleaseSlots:
		l.deps.Slots.Release(l.m.record.Job)
	case ArmTimer:
		l.armTimer(a)
	case CancelTimer:
		if t := l.timers[a.Key]; t != nil {
			t.Stop()
			delete(l.timers, a.Key)
		}
	case Store:
		l.store(a.Action)
	case RecordStop:
		l.call(l.deps.Pools.storage, func(ctx context.Context) Event { return l.recordStop(ctx, a) })
	case SnapshotEnded:
		l.snapshotEnded(a)
	case StopEnded:
		l.stopEnded(a)
	case LoadSnapshot:
		l.call(l.deps.Pools.storage, func(ctx context.Context) Event { return l.readSnapshot(ctx, a) })
	case StartCoordinator, StopCoordinator, SnapshotCoordinator, DeliverEvent, AnswerCoordinator, NotifyCoordinators:
		l.coordinate(a)
	case RestoreHooks:
		l.restoreHooks(a)
	case CallHooks:
		for _, h := range l.hooks {
			h.trigger(a.Checkpoint)
		}
	default:
		l.tell(action)
	}
}

// tell carries out what is only told: statuses, logs, figures.
func (l *loop) tell(action Action) {
	switch a := action.(type) {
	case SetStatus:
		if a.Status.Final() {
			l.ended = time.Now()
		}
		l.log.Info("job status", zap.Stringer("status", a.Status), zap.String("detail", a.Detail), zap.Int("restarts", a.Restarts))
		l.setStatus(a)
	case CheckpointEnded:
		l.checkpointEnded(a.Statistics)
	case Alarm:
		l.log.Warn("checkpoints fail", zap.Int("failures", a.Alarm.Failures), zap.Int64("checkpoint", int64(a.Alarm.Checkpoint)),
			zap.Stringer("reason", a.Alarm.Reason), zap.String("message", a.Alarm.Message))
	case TaskFailed:
		l.log.Warn("task failed", zap.Stringer("task", a.Attempt.SubtaskID()), zap.Stringer("attempt", a.Attempt),
			zap.String("vertex", l.spec.Graph.Vertices[a.Attempt.Vertex].Name), zap.Error(a.Failure), zap.String("stack", a.Failure.Stack))
	case Restarting:
		l.figs.Restarted()
		l.log.Info("job restarts", zap.Duration("after", a.After), zap.Error(a.Failure))
	case StopActing:
		l.overtaken(errOvertaken(a.Message))
	case Note:
		l.log.Debug("ignored", zap.String("what", a.Text))
	case JobEnded:
		l.log.Info("job ended", zap.Stringer("status", a.Status))
	default:
		assert.That(false, "an action that nobody carries out")
	}
}

// errOvertaken is the cause of stopping that the core found out.
type errOvertaken string

func (e errOvertaken) Error() string { return string(e) }

// send sends a message to a TaskManager. Where the core must know that it could not,
// the answer is an event, after the actions at hand.
func (l *loop) send(a Send) {
	session := l.sessions[taskManagerOf(a.To)]
	err := rpc.ErrSessionClosed
	if session != nil {
		err = session.Send(a.Message)
	}
	if err == nil {
		return
	}
	switch x := a.Message.(type) {
	case rpc.TriggerCheckpoint:
		l.m.inbox.Post(happened{Checkpointing{checkpointing.TriggerFailed{
			Checkpoint: x.Barrier.ID, Attempt: x.Attempt, Message: err.Error(),
		}}})
	case rpc.OperatorEvent:
		l.m.inbox.Post(happened{Coordination{Operator: x.Operator, Event: opcoord.EventConfirmed{
			Attempt: x.Attempt, Seq: x.Seq, Error: err.Error(),
		}}})
	default:
		l.log.Debug("not sent", zap.String("message", messageText(a.Message)), zap.Error(err))
	}
}

// forget answers the report that is being handled.
func (l *loop) forget(attempt weir.AttemptID) {
	if l.reporter != nil {
		// If it is not sent the report comes again, with the next session.
		_ = l.reporter.Send(rpc.Forget{Attempt: attempt})
	}
}

func (l *loop) armTimer(a ArmTimer) {
	l.timers[a.Key] = l.m.group.AfterFunc("job/timer", time.Until(a.At), func(context.Context) {
		l.m.inbox.Post(happened{TimerFired{Key: a.Key}})
	})
}

// call runs fn on a pool; the event that it returns, if any, goes to the core.
func (l *loop) call(p *pool, fn func(ctx context.Context) Event) {
	l.calls++
	p.do(func(ctx context.Context) { l.m.inbox.Post(effectDone{fn(ctx)}) })
}

// checkpointEnded is the one line that a log has of a checkpoint, and its figures.
func (l *loop) checkpointEnded(s checkpointing.CheckpointStatistics) {
	fields := []zap.Field{
		zap.Int64("checkpoint", int64(s.ID)), zap.Stringer("kind", s.Kind), zap.Int64("bytes", s.Bytes), zap.Duration("duration", s.Duration),
	}
	if s.Status == checkpointing.Completed {
		l.figs.CheckpointCompleted(figuresOf(s))
		l.log.Info("checkpoint completed", append(fields, zap.String("path", s.Metadata))...)
	} else {
		l.figs.CheckpointFailed(s.Reason)
		l.log.Warn("checkpoint failed", append(fields, zap.Stringer("reason", s.Reason), zap.String("message", s.Message),
			zap.Int("acknowledged", s.Acknowledged), zap.Int("tasks", s.Tasks))...)
	}
	l.figs.CheckpointsInProgress(l.core.coordinator.Pending())
}

// figuresOf are the figures of a completed checkpoint.
func figuresOf(s checkpointing.CheckpointStatistics) metrics.CheckpointFigures {
	f := metrics.CheckpointFigures{
		ID: s.ID, At: s.Triggered.Add(s.Duration), Duration: s.Duration, Bytes: s.Bytes, NewBytes: s.NewBytes, InFlight: s.PersistedBytes,
	}
	t, last := s.Timeline, s.Timeline.Decided
	for _, p := range []struct {
		name string
		end  time.Time
	}{{"trigger", t.IDTaken}, {"coordinators", t.TasksTriggered}, {"tasks", t.LastAck}, {"metadata", t.Written}, {"link", t.Linked}} {
		if last.IsZero() || p.end.IsZero() {
			return f // another leader began it, or it is a savepoint, which has no link
		}
		f.Phases = append(f.Phases, metrics.CheckpointPhase{Name: p.name, Took: p.end.Sub(last)})
		last = p.end
	}
	return f
}

// coordinate carries out what concerns enumerators.
func (l *loop) coordinate(action Action) {
	switch a := action.(type) {
	case StartCoordinator:
		l.stopEnumerator(a.Operator)
		l.enumerators[a.Operator] = startEnumerator(l.m.group.Context(), l.spec, a, l.deps.Catalog, l.deps.BuildTimeout,
			func(ev Event) { l.m.inbox.Post(happened{ev}) })
	case StopCoordinator:
		l.stopEnumerator(a.Operator)
	case SnapshotCoordinator:
		l.request(a.Operator, enumeratorRequest{snapshot: a.Checkpoint})
	case DeliverEvent:
		l.request(a.Operator, enumeratorRequest{event: &a})
	case AnswerCoordinator:
		if e := l.enumerators[a.Operator]; e != nil {
			e.answer(a)
		}
	case NotifyCoordinators:
		for _, s := range l.core.sources {
			l.request(s.id, enumeratorRequest{complete: a.Checkpoint})
		}
		for _, h := range l.hooks {
			h.notify(a.Checkpoint)
		}
	default:
		assert.That(false, "not an action for an enumerator")
	}
}

func (l *loop) request(op weir.OperatorID, r enumeratorRequest) {
	if e := l.enumerators[op]; e != nil {
		e.requests.Post(r)
	}
}

// stopEnumerator tells an enumerator to end. It is waited for when the loop ends;
// those that have ended meanwhile are dropped from the list.
func (l *loop) stopEnumerator(op weir.OperatorID) {
	e := l.enumerators[op]
	if e == nil {
		return
	}
	delete(l.enumerators, op)
	e.stop(errJobOver)
	alive := l.leaving[:0]
	for _, old := range l.leaving {
		if len(old.group.Live()) > 0 {
			alive = append(alive, old)
		}
	}
	clear(l.leaving[len(alive):])
	l.leaving = append(alive, e)
}
