package checkpointing

import (
	"fmt"
	"slices"
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
	decided    time.Time
	planned    time.Time
	plan       *CheckpointPlan
	checkpoint *PendingCheckpoint // once it has an id
	// lost says why the plan does not hold any more, before there is an id.
	lost        weir.FailureReason
	lostMessage string
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
		c.refuse(r, refusals[r.Reason])
	}
	if d.Reschedule > 0 {
		c.emit(c.scheduler.postpone(now, d.Reschedule)...)
	}
	if d.Start == nil {
		return
	}
	c.lastTrigger++
	c.triggering = &trigger{id: c.lastTrigger, request: *d.Start, run: c.run, decided: now}
	c.emit(NeedPlan{Trigger: c.lastTrigger})
}

// refusals say more of the reasons that the decider gives.
var refusals = map[weir.FailureReason]string{
	weir.TooManyCheckpointRequests: fmt.Sprintf("%d requests wait already", maxQueuedRequests),
}

// refuse answers a request that never became a trigger. It is no failed checkpoint
// (behaviour §1.7).
func (c *CheckpointCoordinator) refuse(r RefusedRequest, message string) {
	if r.Request == 0 {
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
	c.triggering.plan, c.triggering.planned = ev.Plan, now
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
	if t.lost != weir.ReasonNone {
		c.triggerFailed(now, t.lost, t.lostMessage)
		return
	}
	p := c.newPending(now, t, ev.Checkpoint)
	t.checkpoint = p
	c.pending = append(c.pending, p)
	c.emit(ArmTimer{Key: TimerKey{Kind: ExpiryTimer, Checkpoint: p.id}, At: now.Add(c.config.Options.Timeout)})
	if p.kind.IsSavepoint() {
		c.emit(InitializeLocation{Checkpoint: p.id, Kind: p.kind, Location: p.location})
		return
	}
	c.snapshotCoordinators(now, p)
}

// newPending is the pending checkpoint of a trigger.
func (c *CheckpointCoordinator) newPending(now time.Time, t *trigger, id weir.CheckpointID) *PendingCheckpoint {
	p := NewPendingCheckpoint(id, c.kindOf(t.request), t.plan, c.config.Operators, now)
	p.request, p.expires = t.request.Request, true
	if t.request.Location != "" {
		p.location = t.request.Location
	}
	p.hooks = make([]HookState, len(c.config.Hooks))
	p.hookAcked = make([]bool, len(c.config.Hooks))
	p.hooksMissing = len(c.config.Hooks)
	for i, h := range c.config.Hooks {
		p.hooks[i].Hook = h
	}
	p.timeline = Timeline{Requested: t.request.At, Decided: t.decided, Planned: t.planned, IDTaken: now}
	return p
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

func (c *CheckpointCoordinator) locationInitialized(now time.Time, ev LocationInitialized) {
	if p := c.takeDisposed(ev.Checkpoint, atLocation); p != nil {
		c.discard(p, p.dispose())
		return
	}
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atLocation {
		c.note("not awaited: %s", ev)
		return
	}
	p.timeline.Located = now
	c.snapshotCoordinators(now, p)
}

func (c *CheckpointCoordinator) locationFailed(now time.Time, ev LocationFailed) {
	if p := c.takeDisposed(ev.Checkpoint, atLocation); p != nil {
		c.unlocated(p)
		return
	}
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atLocation {
		c.note("not awaited: %s", ev)
		return
	}
	c.abort(now, p, failureOf(p, ev.Reason, ev.Message))
	c.unlocated(c.takeDisposed(p.id, atLocation))
}

// unlocated ends a savepoint whose location was not made. There is nothing to discard,
// unless a task has acknowledged before it was asked to.
func (c *CheckpointCoordinator) unlocated(p *PendingCheckpoint) {
	if states := p.dispose(); len(states) > 0 {
		c.discard(p, states)
	}
}

func (c *CheckpointCoordinator) snapshotCoordinators(now time.Time, p *PendingCheckpoint) {
	p.stage = atCoordinators
	if p.coordinatorsMissing == 0 {
		c.callHooks(now, p)
		return
	}
	c.emit(SnapshotCoordinators{Checkpoint: p.id, Operators: c.config.Operators})
}

// callHooks calls the master hooks, after the operator coordinators have given their
// state.
func (c *CheckpointCoordinator) callHooks(now time.Time, p *PendingCheckpoint) {
	p.stage = atHooks
	if p.hooksMissing == 0 {
		c.triggerTasks(now, p)
		return
	}
	c.emit(CallHooks{Checkpoint: p.id, Hooks: c.config.Hooks})
}

func (c *CheckpointCoordinator) hookCompleted(now time.Time, ev HookCompleted) {
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atHooks || p.AcknowledgeHook(ev.Hook, ev.State) != AckSuccess {
		c.note("not awaited: %s", ev)
		return
	}
	if p.hooksMissing == 0 {
		p.timeline.Hooked = now
		c.triggerTasks(now, p)
	}
}

func (c *CheckpointCoordinator) hookFailed(now time.Time, ev HookFailed) {
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atHooks {
		c.note("not awaited: %s", ev)
		return
	}
	c.abort(now, p, failureOf(p, weir.TriggerCheckpointFailure, fmt.Sprintf("master hook %q: %s", ev.Hook, ev.Message)))
}

func (c *CheckpointCoordinator) coordinatorSnapshotted(now time.Time, ev CoordinatorSnapshotted) {
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atCoordinators || p.AcknowledgeCoordinator(ev.Operator, ev.State) != AckSuccess {
		c.note("not awaited: %s", ev)
		return
	}
	if p.coordinatorsMissing == 0 {
		p.timeline.Coordinated = now
		c.callHooks(now, p)
	}
}

func (c *CheckpointCoordinator) coordinatorFailed(now time.Time, ev CoordinatorFailed) {
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atCoordinators {
		c.note("not awaited: %s", ev)
		return
	}
	c.abort(now, p, failureOf(p, weir.TriggerCheckpointFailure, fmt.Sprintf("operator coordinator %s: %s", ev.Operator, ev.Message)))
}

func (c *CheckpointCoordinator) taskNotTriggered(now time.Time, ev TriggerFailed) {
	p := c.find(ev.Checkpoint)
	if p == nil || !p.Awaits(ev.Attempt) {
		c.note("not awaited: %s", ev)
		return
	}
	c.abort(now, p, failureOf(p, weir.TriggerCheckpointFailure, fmt.Sprintf("%s was not triggered: %s", ev.Attempt, ev.Message)))
}

func (c *CheckpointCoordinator) triggerTasks(now time.Time, p *PendingCheckpoint) {
	p.stage, p.timeline.TasksTriggered = atTasks, now
	c.triggering, c.roomMade = nil, true
	alignment, timeout := c.config.Options.alignmentOf(p.kind)
	c.emit(TriggerTasks{
		Attempts: p.plan.Trigger,
		Barrier: weir.Barrier{
			ID:  p.id,
			Age: now.Sub(p.triggered), // what the operator coordinators took
			Options: weir.CheckpointOptions{
				Kind: p.kind, Alignment: alignment, Timeout: timeout, Location: p.location,
			},
		},
	})
	if p.FullyAcknowledged() {
		c.writeMetadata(now, p)
	}
}

// lose notes that an attempt of the plan ended before the checkpoint has an id: it would
// never acknowledge.
func (t *trigger) lose(a weir.AttemptID, reason weir.FailureReason, message string) {
	if t.checkpoint == nil && t.plan != nil && t.lost == weir.ReasonNone && slices.Contains(t.plan.Wait, a) {
		t.lost, t.lostMessage = reason, message
	}
}

// triggerFailed ends a trigger that has no id yet.
func (c *CheckpointCoordinator) triggerFailed(now time.Time, reason weir.FailureReason, message string) {
	t := c.triggering
	c.triggering, c.roomMade = nil, true
	s := CheckpointStatistics{
		Kind: t.request.Kind, Status: Failed, Triggered: now, Reason: reason, Message: message,
		Timeline: Timeline{Requested: t.request.At, Decided: t.decided, Planned: t.planned},
	}
	c.history.add(s)
	c.emit(CheckpointEnded{Statistics: s})
	c.failed(checkpointFailure{kind: t.request.Kind, reason: reason, message: message})
	if t.request.Request != 0 {
		c.emit(RequestEnded{Request: t.request.Request, Reason: reason, Message: message})
	}
}
