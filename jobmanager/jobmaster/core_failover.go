package jobmaster

import (
	"fmt"
	"iter"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/failover"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/rpc"
)

// fail reacts to a failure of the vertices (nil: of all).
//
// In order: the strategy is asked, once per failover; checkpoints are aborted; the
// region's coordinators and attempts are ended. What follows happens when they have.
func (c *Core) fail(failure *weir.Failure, vertices []int) {
	switch {
	case c.phase == ended || c.phase == waiting:
		return
	case c.phase == stopping && c.goal != toRestart:
		return
	case c.phase == stopping && !failure.NoRetry:
		c.affect(vertices)
		c.stopAffected()
		return
	}
	c.failOver(failure, vertices, c.strategy.Failed(c.now, failure))
}

// failOver ends the attempts of the vertices (nil: of all), and restarts them or not.
func (c *Core) failOver(failure *weir.Failure, vertices []int, decision failover.Decision) {
	if c.stopFailing(failure.Error()) {
		vertices = nil
	}
	c.failure = failure
	c.cancelTimer(SlotTimer, &c.slotTimer)
	c.cancelTimer(RestartTimer, &c.restartTimer)
	c.phase = stopping
	if decision.Restart {
		c.goal = toRestart
		c.restarts++
		c.affect(vertices)
		c.setStatus(rpc.JobRestarting, failure.Error())
		c.emit(Restarting{Failure: failure, After: decision.After})
		c.restartTimer = c.armTimer(RestartTimer, decision.After)
		c.checkpoint(checkpointing.JobFailover{})
	} else {
		c.goal = toFail
		c.affect(nil)
		c.setStatus(rpc.JobFailing, failure.Error())
		c.checkpoint(checkpointing.TasksStopped{})
	}
	c.stopAffected()
}

// cancel ends the job because somebody asked for it.
func (c *Core) cancel() {
	if c.phase == ended || c.phase == stopping && c.goal != toRestart {
		return
	}
	c.cancelTimer(SlotTimer, &c.slotTimer)
	c.cancelTimer(RestartTimer, &c.restartTimer)
	c.stopFailing("the job was cancelled")
	c.phase, c.goal = stopping, toCancel
	c.affect(nil)
	c.setStatus(rpc.JobCancelling, "")
	c.checkpoint(checkpointing.TasksStopped{})
	c.stopAffected()
}

// stopAffected ends the attempts and coordinators of the run.
func (c *Core) stopAffected() {
	c.loading, c.restored = false, nil
	clear(c.starting)
	for i, s := range c.sources {
		if c.affected[s.vertex] && c.coordinators[i] != 0 {
			c.coordinators[i] = 0
			c.emit(StopCoordinator{Operator: s.id})
		}
	}
	for id := range c.affectedTasks() {
		c.graphStep(execgraph.Cancel{Subtask: id})
	}
}

// tryRestart goes on once everything of the run has ended, and it is known which
// checkpoint is the newest.
func (c *Core) tryRestart() {
	if c.coordinator.Linking() && !planted.Is(planted.LinkNotAwaited) {
		return
	}
	for id := range c.affectedTasks() {
		if x := c.graph.Current(id); x.ID.N > 0 && !x.State.Final() {
			return
		}
	}
	switch c.goal {
	case toCancel:
		c.end(rpc.JobCanceled, "")
	case toFail:
		c.end(rpc.JobFailed, c.failure.Error())
	case toRestart:
		if c.restartTimer == 0 {
			c.prepare()
		}
	}
}

// affectedTasks yields the subtasks of the current run.
func (c *Core) affectedTasks() iter.Seq[weir.SubtaskID] {
	return func(yield func(weir.SubtaskID) bool) {
		for id := range c.graph.Subtasks() {
			if c.affected[id.Vertex] && !yield(id) {
				return
			}
		}
	}
}

func (c *Core) taskManagerLost(e TaskManagerLost) {
	failure := &weir.Failure{
		Message: fmt.Sprintf("TaskManager %.8s was lost: %s", e.TaskManager, e.Reason),
		Fault:   weir.FaultOutside, Subtask: -1,
	}
	at := execgraph.Location{TaskManager: e.TaskManager, Incarnation: e.Incarnation}
	if cause, ok := c.cause(); ok && taskManagerOf(cause.At) == at {
		c.blame(failure)
	}
	lost := c.scheduler.Lose(e.TaskManager, e.Incarnation)
	delete(c.addresses, at)
	c.graphStep(execgraph.Lose{TaskManager: e.TaskManager, Incarnation: e.Incarnation, Failure: failure})
	if c.phase == preparing && lost > 0 {
		c.requestSlots()
	}
}

func (c *Core) taskState(e TaskState) {
	if cause, ok := c.cause(); ok && cause.ID == e.Attempt && e.State == rpc.TaskFailed && e.Failure != nil {
		c.blame(e.Failure)
		if e.Failure.NoRetry {
			c.fail(e.Failure, nil)
		}
	}
	c.graphStep(execgraph.Report{Attempt: e.Attempt, State: execgraph.State(e.State), Failure: e.Failure})
}

// cause is the attempt that is to blame for the failure the job stops for, if the
// failure says that it is only a consequence.
func (c *Core) cause() (execgraph.Execution, bool) {
	if c.phase != stopping || c.goal == toCancel || c.failure == nil || c.failure.Cause == (weir.AttemptID{}) {
		return execgraph.Execution{}, false
	}
	return c.graph.Find(c.failure.Cause)
}

// blame replaces the failure that the job stops for by its cause.
func (c *Core) blame(failure *weir.Failure) {
	c.failure = failure
	c.setStatus(c.status, failure.Error())
}

// graphStep tells the execution graph and passes on what it says.
func (c *Core) graphStep(ev execgraph.Event) {
	for _, act := range c.graph.Step(ev) {
		switch a := act.(type) {
		case execgraph.DeployTask:
			c.emit(Send{To: a.Execution.At, Message: rpc.Deploy{Deployment: c.deployment(a.Execution)}})
		case execgraph.CancelTask:
			c.emit(Send{To: a.Execution.At, Message: rpc.Cancel{Attempt: a.Execution.ID}})
		case execgraph.ForgetTask:
			c.emit(Forget{Attempt: a.Attempt})
		case execgraph.Changed:
			c.changed(a.Execution)
		case execgraph.Note:
			c.emit(Note{Text: a.Text})
		}
	}
}

// changed tells everybody who must know of an attempt's new state.
func (c *Core) changed(x execgraph.Execution) {
	for i, s := range c.sources {
		switch {
		case s.vertex != int(x.ID.Vertex):
		case x.State == execgraph.Running:
			c.hold(i, opcoord.SubtaskRunning{Attempt: x.ID})
		case x.State.Final():
			c.hold(i, opcoord.SubtaskEnded{Attempt: x.ID})
		}
	}
	switch x.State {
	case execgraph.Finished:
		c.checkpoint(checkpointing.AttemptFinished{Attempt: x.ID})
		c.finalCheckpoint()
	case execgraph.Failed:
		c.emit(TaskFailed{Attempt: x.ID, Failure: x.Failure})
		c.checkpoint(checkpointing.AttemptFailed{Attempt: x.ID})
		c.fail(x.Failure, c.regions[x.ID.Vertex])
	}
}
