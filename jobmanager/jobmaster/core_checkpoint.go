package jobmaster

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/rpc"
)

// checkpoint tells the checkpoint coordinator and passes on what it says.
func (c *Core) checkpoint(ev checkpointing.Event) {
	for _, act := range c.coordinator.Step(c.now, ev) {
		switch a := act.(type) {
		case checkpointing.NeedPlan:
			c.checkpoint(checkpointing.PlanFor(a.Trigger, c.view(), c.spec.Settings.Checkpointing))
		case checkpointing.SnapshotCoordinators:
			for i, s := range c.sources {
				if contains(a.Operators, s.id) {
					c.hold(i, opcoord.CheckpointRequested{Checkpoint: a.Checkpoint})
				}
			}
		case checkpointing.ArmTimer:
			c.emit(ArmTimer{Key: TimerKey{Kind: CheckpointTimer, Checkpoint: a.Key}, At: a.At})
		case checkpointing.CancelTimer:
			c.emit(CancelTimer{Key: TimerKey{Kind: CheckpointTimer, Checkpoint: a.Key}})
		case checkpointing.TriggerTasks:
			c.triggerTasks(a)
		case checkpointing.TakeID, checkpointing.WriteMetadata, checkpointing.AddLink,
			checkpointing.DiscardState, checkpointing.DeleteCheckpoint, checkpointing.DeleteShared,
			checkpointing.InitializeLocation:
			if link, ok := a.(checkpointing.AddLink); ok && planted.Is(planted.NotifiedBeforeLink) {
				c.notifyEarly(link.Checkpoint)
			}
			c.emit(Store{Action: a})
		case checkpointing.CallHooks:
			c.emit(CallHooks{Checkpoint: a.Checkpoint})
		case checkpointing.NotifyComplete:
			c.notifyComplete(a)
		case checkpointing.NotifyAborted:
			c.notifyAborted(a)
		case checkpointing.CheckpointEnded:
			c.emit(CheckpointEnded{Statistics: a.Statistics})
			c.lastMayHaveFailed(a.Statistics)
		case checkpointing.Alarm:
			c.emit(Alarm{Alarm: a})
		case checkpointing.FailJob:
			c.tooManyFailures(a)
		case checkpointing.StopActing:
			c.phase, c.status, c.detail = ended, rpc.JobSuspended, a.Message
			c.emit(StopActing{Message: a.Message})
		case checkpointing.RequestEnded:
			c.requestEnded(a)
		case checkpointing.LinkSettled:
			// advance looks at Linking itself.
		case checkpointing.Note:
			c.emit(Note{Text: a.Text})
		}
	}
}

// triggerTasks sends the barrier to those who start a checkpoint. An attempt that is
// gone meanwhile has aborted the checkpoint.
func (c *Core) triggerTasks(a checkpointing.TriggerTasks) {
	if c.stop != nil && a.Barrier.Options.Kind.IsSynchronous() {
		c.stop.triggered = true
	}
	for _, id := range a.Attempts {
		x, ok := c.graph.Find(id)
		if !ok || !x.State.Deployed() {
			c.note("trigger of %d: %s is gone", a.Barrier.ID, id)
			continue
		}
		c.emit(Send{To: x.At, Message: rpc.TriggerCheckpoint{Attempt: id, Barrier: a.Barrier}})
	}
}

func (c *Core) notifyComplete(a checkpointing.NotifyComplete) {
	id := a.Permit.ID()
	for _, attempt := range a.Tasks {
		if x, ok := c.graph.Find(attempt); ok && x.State.Deployed() {
			c.emit(Send{To: x.At, Message: rpc.NotifyCheckpointComplete{Attempt: attempt, Checkpoint: id, Subsumed: a.Subsumed}})
		}
	}
	for i := range c.sources {
		c.hold(i, opcoord.CheckpointCompleted{Checkpoint: id})
	}
	if len(c.sources) > 0 {
		c.emit(NotifyCoordinators{Checkpoint: id})
	}
}

// notifyEarly is a bug that only tests put in: without it, nobody can notify before
// the link, since that takes a permit.
func (c *Core) notifyEarly(id weir.CheckpointID) {
	for x := range c.graph.Executions() {
		if x.State.Deployed() {
			c.emit(Send{To: x.At, Message: rpc.NotifyCheckpointComplete{Attempt: x.ID, Checkpoint: id}})
		}
	}
}

func (c *Core) notifyAborted(a checkpointing.NotifyAborted) {
	for _, attempt := range a.Tasks {
		if x, ok := c.graph.Find(attempt); ok && x.State.Deployed() {
			c.emit(Send{To: x.At, Message: rpc.NotifyCheckpointAborted{Attempt: attempt, Checkpoint: a.Checkpoint, LatestCompleted: a.LatestCompleted}})
		}
	}
	for i := range c.sources {
		c.hold(i, opcoord.CheckpointAborted{Checkpoint: a.Checkpoint})
	}
}

// tooManyFailures fails the job, or the region of the task that is to blame, because
// snapshots failed.
func (c *Core) tooManyFailures(a checkpointing.FailJob) {
	failure := &weir.Failure{Fault: weir.FaultSystem, Subtask: -1}
	if a.Checkpoint == weir.NoCheckpoint {
		failure.Message = fmt.Sprintf("checkpoints fail: %s: %s", a.Reason, a.Message)
	} else {
		failure.Message = fmt.Sprintf("checkpoint %d failed: %s: %s", a.Checkpoint, a.Reason, a.Message)
	}
	if a.Attempt == (weir.AttemptID{}) {
		c.fail(failure, nil)
		return
	}
	if _, ok := c.graph.Find(a.Attempt); !ok {
		c.note("%s: that attempt is gone", a)
		return
	}
	c.fail(failure, c.regions[a.Attempt.Vertex])
}

// view is the execution graph as plans see it.
func (c *Core) view() []checkpointing.VertexView {
	plan := c.spec.Graph
	views := make([]checkpointing.VertexView, len(plan.Vertices))
	for v := range plan.Vertices {
		for _, e := range plan.Vertices[v].Inputs {
			views[v].Inputs = append(views[v].Inputs, checkpointing.InputView{
				From: plan.Edges[e].From, Pointwise: plan.Edges[e].Partitioning.Pointwise(),
			})
		}
		views[v].Subtasks = make([]checkpointing.SubtaskView, plan.Vertices[v].Parallelism)
	}
	for x := range c.graph.Executions() {
		views[x.ID.Vertex].Subtasks[x.ID.Subtask] = checkpointing.SubtaskView{Attempt: x.ID, Status: planStatus(x.State)}
	}
	return views
}

func planStatus(s execgraph.State) checkpointing.TaskStatus {
	switch s {
	case execgraph.Created, execgraph.Scheduled, execgraph.Deploying:
		return checkpointing.TaskWaiting
	case execgraph.Initializing:
		return checkpointing.TaskStarting
	case execgraph.Running:
		return checkpointing.TaskRunning
	case execgraph.Finished:
		return checkpointing.TaskFinished
	default:
		return checkpointing.TaskEnding
	}
}

// coordination passes an event to an operator's gates. What a coordinator of an
// earlier run says has no effect.
func (c *Core) coordination(e Coordination) {
	for i, s := range c.sources {
		if s.id != e.Operator {
			continue
		}
		if e.Run != 0 && e.Run != c.coordinators[i] {
			if given, ok := e.Event.(opcoord.EventGiven); ok {
				c.emit(AnswerCoordinator{Operator: s.id, Token: given.Token, Error: "the coordinator was replaced"})
			}
			return
		}
		c.hold(i, e.Event)
		return
	}
	c.note("%s: no such operator", e)
}

// hold tells the gates of source i and passes on what they say.
func (c *Core) hold(i int, ev opcoord.Event) {
	s := c.sources[i]
	for _, act := range c.holders[i].Step(ev) {
		switch a := act.(type) {
		case opcoord.Send:
			c.sendEvent(a)
		case opcoord.EventAccepted:
			c.emit(AnswerCoordinator{Operator: s.id, Token: a.Token})
		case opcoord.EventRefused:
			c.emit(AnswerCoordinator{Operator: s.id, Token: a.Token, Error: a.Message})
		case opcoord.Deliver:
			c.emit(DeliverEvent{Operator: s.id, Subtask: a.Subtask, Event: a.Event})
		case opcoord.SnapshotCoordinator:
			c.emit(SnapshotCoordinator{Operator: s.id, Checkpoint: a.Checkpoint})
		case opcoord.Snapshotted:
			c.checkpoint(checkpointing.CoordinatorSnapshotted{Checkpoint: a.Checkpoint, Operator: a.Operator, State: a.State})
		case opcoord.SnapshotFailed:
			c.checkpoint(checkpointing.CoordinatorFailed{Checkpoint: a.Checkpoint, Operator: a.Operator, Message: a.Message})
		case opcoord.FailAttempt:
			c.fail(&a.Failure, c.regions[s.vertex])
		case opcoord.FailJob:
			c.fail(&a.Failure, c.regions[s.vertex])
		case opcoord.Note:
			c.emit(Note{Text: fmt.Sprintf("%s: %s", s.name, a.Text)})
		}
	}
}

func (c *Core) sendEvent(a opcoord.Send) {
	x, ok := c.graph.Find(a.Attempt)
	if !ok || !x.State.Deployed() {
		c.coordination(Coordination{Operator: a.Operator, Event: opcoord.EventConfirmed{
			Attempt: a.Attempt, Seq: a.Seq, Error: "the subtask does not run",
		}})
		return
	}
	c.emit(Send{To: x.At, Message: rpc.OperatorEvent{Attempt: a.Attempt, Operator: a.Operator, Seq: a.Seq, Event: a.Event}})
}

// coordinatorBroke fails the region whose coordinator failed.
func (c *Core) coordinatorBroke(e CoordinatorBroke) {
	for i, s := range c.sources {
		if s.id == e.Operator && e.Run != 0 && e.Run == c.coordinators[i] {
			c.fail(&e.Failure, c.regions[s.vertex])
			return
		}
	}
	c.note("%s, which is not current", e)
}

func contains(list []weir.OperatorID, id weir.OperatorID) bool {
	for _, o := range list {
		if o == id {
			return true
		}
	}
	return false
}
