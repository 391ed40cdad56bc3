package checkpointing

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
)

// trigger is the single trigger under way (behaviour §3): from the decision to
// start until the tasks were sent their triggers.
type trigger struct {
	id         TriggerID
	request    CheckpointRequest
	run        uint64 // of the coordinator when it began
	plan       *CheckpointPlan
	checkpoint *PendingCheckpoint // once it has an id
}

// situation is what the decider sees.
func (c *CheckpointCoordinator) situation(now time.Time) Situation {
	return Situation{
		Now: now, LastCompletion: c.lastCompletion,
		Triggering: c.triggering != nil, Pending: len(c.pending), Cleaning: len(c.cleaning),
	}
}

func (c *CheckpointCoordinator) submit(now time.Time, r CheckpointRequest) {
	c.decided(now, c.decider.Submit(r, c.situation(now)))
}

// examine asks the decider again, at the end of a step in which a trigger, a
// checkpoint or a cleanup ended.
func (c *CheckpointCoordinator) examine(now time.Time) {
	if !c.shut && c.overtook == "" {
		c.decided(now, c.decider.Next(c.situation(now)))
	}
}

func (c *CheckpointCoordinator) decided(now time.Time, d Decision) {
	for _, r := range d.Refused {
		c.refuse(r, "")
	}
	if d.Reschedule > 0 {
		c.emit(c.scheduler.postpone(now, d.Reschedule)...)
	}
	if d.Start == nil {
		return
	}
	c.lastTrigger++
	c.triggering = &trigger{id: c.lastTrigger, request: *d.Start, run: c.run}
	c.emit(NeedPlan{Trigger: c.lastTrigger})
}

// refuse answers a request that never became a trigger. It is no failed checkpoint
// (behaviour §1.7).
func (c *CheckpointCoordinator) refuse(r RefusedRequest, message string) {
	if r.Periodic {
		c.note("periodic request dropped: %s", r.Reason)
		return
	}
	c.emit(RequestEnded{Request: r.Request, Reason: r.Reason, Message: message})
}

// isTriggering says whether an answer belongs to the trigger under way, before it
// has an id.
func (c *CheckpointCoordinator) isTriggering(id TriggerID, ev Event) bool {
	if t := c.triggering; t != nil && t.id == id && t.checkpoint == nil {
		return true
	}
	c.note("not awaited: %s", ev)
	return false
}

func (c *CheckpointCoordinator) planCalculated(now time.Time, ev PlanCalculated) {
	if !c.isTriggering(ev.Trigger, ev) {
		return
	}
	if ev.Plan == nil {
		c.triggerFailed(now, ev.Reason, ev.Message)
		return
	}
	c.triggering.plan = ev.Plan
	c.emit(TakeID{Trigger: ev.Trigger})
}

func (c *CheckpointCoordinator) idTaken(now time.Time, ev IDTaken) {
	if !c.isTriggering(ev.Trigger, ev) {
		return
	}
	if planted.Is(planted.IDsRepeat) {
		ev.Checkpoint = c.lastID + 1
	}
	t := c.triggering
	if reason := c.voided(t); reason != weir.ReasonNone {
		c.lastID = max(c.lastID, ev.Checkpoint)
		c.triggerFailed(now, reason, fmt.Sprintf("stopped while id %d was taken", ev.Checkpoint))
		return
	}
	if t.plan == nil || ev.Checkpoint <= c.lastID {
		c.triggerFailed(now, weir.TriggerCheckpointFailure, fmt.Sprintf("id %d is not above the last one, %d", ev.Checkpoint, c.lastID))
		return
	}
	c.lastID = ev.Checkpoint
	p := NewPendingCheckpoint(ev.Checkpoint, c.kindOf(t.request), t.plan, c.config.Operators, now)
	p.request = t.request.Request
	t.checkpoint = p
	c.pending = append(c.pending, p)
	p.expires = true
	c.emit(ArmTimer{Key: TimerKey{Kind: ExpiryTimer, Checkpoint: p.id}, At: now.Add(c.config.Options.Timeout)})
	if len(c.config.Operators) > 0 {
		c.emit(SnapshotCoordinators{Checkpoint: p.id, Operators: c.config.Operators})
		return
	}
	c.triggerTasks(now, p)
}

func (c *CheckpointCoordinator) idFailed(now time.Time, ev IDFailed) {
	if c.isTriggering(ev.Trigger, ev) {
		c.triggerFailed(now, ev.Reason, ev.Message)
	}
}

// voided says why a trigger may not go on, if so: the tasks of its plan stopped
// meanwhile.
func (c *CheckpointCoordinator) voided(t *trigger) weir.FailureReason {
	switch {
	case c.shut:
		return weir.CheckpointCoordinatorShutdown
	case t.run == c.run:
		return weir.ReasonNone
	case t.request.Periodic:
		return weir.PeriodicSchedulerShutdown
	default:
		return weir.CheckpointCoordinatorSuspend
	}
}

// kindOf is the kind that tasks are asked for: after a start from a snapshot that is
// not ours nothing may be shared with it until a checkpoint of ours is complete
// (behaviour §3).
func (c *CheckpointCoordinator) kindOf(r CheckpointRequest) weir.SnapshotKind {
	if latest, ok := c.completed.Latest(); ok && !latest.Owned && r.Kind == weir.Checkpoint {
		return weir.FullCheckpoint
	}
	return r.Kind
}

func (c *CheckpointCoordinator) coordinatorSnapshotted(now time.Time, ev CoordinatorSnapshotted) {
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atCoordinators || p.AcknowledgeCoordinator(ev.Operator, ev.State) != AckSuccess {
		c.note("not awaited: %s", ev)
		return
	}
	if p.coordinatorsMissing == 0 {
		c.triggerTasks(now, p)
	}
}

func (c *CheckpointCoordinator) coordinatorFailed(now time.Time, ev CoordinatorFailed) {
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atCoordinators {
		c.note("not awaited: %s", ev)
		return
	}
	c.abort(now, p, weir.TriggerCheckpointFailure, fmt.Sprintf("operator coordinator %s: %s", ev.Operator, ev.Message))
}

func (c *CheckpointCoordinator) taskNotTriggered(now time.Time, ev TriggerFailed) {
	p := c.find(ev.Checkpoint)
	if p == nil || !p.Awaits(ev.Attempt) {
		c.note("not awaited: %s", ev)
		return
	}
	c.abort(now, p, weir.TriggerCheckpointFailure, fmt.Sprintf("%s was not triggered: %s", ev.Attempt, ev.Message))
}

func (c *CheckpointCoordinator) triggerTasks(now time.Time, p *PendingCheckpoint) {
	p.stage = atTasks
	c.triggering, c.roomMade = nil, true
	alignment, timeout := c.config.Options.alignmentOf(p.kind)
	c.emit(TriggerTasks{
		Attempts: p.plan.Trigger,
		Barrier: weir.Barrier{
			ID:  p.id,
			Age: now.Sub(p.triggered), // what the operator coordinators took
			Options: weir.CheckpointOptions{
				Kind: p.kind, Alignment: alignment, Timeout: timeout, Location: fmt.Sprintf("chk-%d", p.id),
			},
		},
	})
	if p.FullyAcknowledged() {
		c.writeMetadata(now, p)
	}
}

// triggerFailed ends a trigger that has no id yet.
func (c *CheckpointCoordinator) triggerFailed(now time.Time, reason weir.FailureReason, message string) {
	t := c.triggering
	c.triggering, c.roomMade = nil, true
	s := CheckpointStatistics{Kind: t.request.Kind, Status: Failed, Triggered: now, Reason: reason, Message: message}
	c.history.add(s)
	c.emit(CheckpointEnded{Statistics: s})
	c.emit(c.failures.failed(weir.NoCheckpoint, reason, message)...)
	if !t.request.Periodic {
		c.emit(RequestEnded{Request: t.request.Request, Reason: reason, Message: message})
	}
}
