package taskmanager

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager/lifecycle"
	"github.com/weirflow/weir/taskmanager/task"
)

// errInterrupted is why a task's waits end when it is cancelled or fails.
var errInterrupted = errors.New("the task was told to stop")

// obey does what the leader says.
func (l *loop) obey(m rpc.Message) {
	switch m := m.(type) {
	case rpc.Deploy:
		l.deploy(m.Deployment)
	case rpc.Cancel:
		l.cancel(m.Attempt)
	case rpc.TriggerCheckpoint:
		l.trigger(m)
	case rpc.NotifyCheckpointComplete:
		if a := l.live(m.Attempt); a != nil {
			a.task.NotifyComplete(m.Checkpoint)
		}
	case rpc.NotifyCheckpointAborted:
		if a := l.live(m.Attempt); a != nil {
			a.task.NotifyAborted(m.Checkpoint, m.LatestCompleted)
		}
	case rpc.OperatorEvent:
		l.operatorEvent(m)
	case rpc.Forget:
		if a := l.attempts[m.Attempt]; a != nil && a.life.State().Final() {
			l.forget(a)
		}
	case rpc.HeartbeatAck:
	default:
		l.log.Warn("unexpected message", zap.String("message", fmt.Sprintf("%T", m)))
	}
}

// live finds an attempt of the current leader that has not ended.
func (l *loop) live(id weir.AttemptID) *attempt {
	a := l.attempts[id]
	if a == nil || a.task == nil || a.life.State().Final() || id.Epoch != l.epoch {
		return nil
	}
	return a
}

// deploy starts an attempt, or reports why not.
func (l *loop) deploy(d rpc.TaskDeployment) {
	id := d.Attempt
	if id.Epoch != l.epoch && !planted.Is(planted.OldEpochObeyed) {
		l.log.Warn("deployment of another epoch", zap.String("attempt", id.String()), zap.Uint64("epoch", uint64(l.epoch)))
		return
	}
	if l.attempts[id] != nil {
		l.log.Debug("deployed already", zap.String("attempt", id.String()))
		return
	}
	a := &attempt{id: id, life: lifecycle.New()}
	l.attempts[id] = a
	t, f := l.admit(d)
	if f != nil {
		l.step(a, lifecycle.Fail{Failure: f})
		return
	}
	a.task, a.held = t, true
	l.step(a, lifecycle.Deploy{})
}

// admit makes the task, if it can run here.
func (l *loop) admit(d rpc.TaskDeployment) (*task.Task, *weir.Failure) {
	refuse := func(noRetry bool, format string, args ...any) (*task.Task, *weir.Failure) {
		return nil, &weir.Failure{Message: fmt.Sprintf(format, args...), Fault: weir.FaultSystem, NoRetry: noRetry, Subtask: d.Attempt.Subtask}
	}
	switch {
	case l.stopping:
		return refuse(false, "%v", errClosing)
	case d.CodeID != l.o.CodeID:
		return refuse(false, "the job needs code %s, this task manager has %s", d.CodeID, l.o.CodeID)
	case !l.fits(d.Attempt):
		return refuse(false, "no free slot: all %d are taken", l.o.Slots)
	}
	t, err := task.New(d, l.resources, owner{l.inbox})
	if err != nil {
		return refuse(true, "%v", err)
	}
	return t, nil
}

// slot is what an attempt runs in: subtask i of each vertex of a job shares one.
type slot struct {
	job     weir.JobID
	subtask int32
}

func slotOf(id weir.AttemptID) slot { return slot{id.Job, id.Subtask} }

// fits says whether there is a slot for an attempt.
func (l *loop) fits(id weir.AttemptID) bool {
	taken := map[slot]bool{slotOf(id): true}
	for _, a := range l.attempts {
		if a.held {
			taken[slotOf(a.id)] = true
		}
	}
	return len(taken) <= l.o.Slots
}

// cancel ends an attempt. One that is not here has ended.
func (l *loop) cancel(id weir.AttemptID) {
	a := l.attempts[id]
	switch {
	case a == nil:
		l.send(rpc.TaskStateChanged{Attempt: id, State: rpc.TaskCanceled})
	case a.life.State().Final():
		l.send(*a.last)
	default:
		l.step(a, lifecycle.Cancel{})
	}
}

// trigger starts a checkpoint, if the task is running.
func (l *loop) trigger(m rpc.TriggerCheckpoint) {
	decline := func(why string) {
		l.send(rpc.DeclineCheckpoint{
			Attempt: m.Attempt, Checkpoint: m.Barrier.ID, Reason: weir.CheckpointDeclinedTaskNotReady, Message: why,
		})
	}
	a := l.live(m.Attempt)
	if a == nil {
		decline("there is no such attempt here")
		return
	}
	if s := a.life.State(); s != lifecycle.Running {
		decline("the task is " + s.String())
		return
	}
	if err := a.task.Trigger(m.Barrier); err != nil {
		decline(err.Error())
	}
}

// operatorEvent brings an event to its task, or says that it cannot.
func (l *loop) operatorEvent(m rpc.OperatorEvent) {
	err := errors.New("there is no such attempt here")
	if a := l.live(m.Attempt); a != nil {
		err = a.task.OperatorEvent(m.Operator, m.Seq, m.Event)
	}
	if err != nil {
		l.send(rpc.OperatorEventAck{Attempt: m.Attempt, Seq: m.Seq, Error: err.Error()})
	}
}

// step steps an attempt's life and does what it says.
func (l *loop) step(a *attempt, ev lifecycle.Event) {
	for _, act := range a.life.Step(ev) {
		switch act := act.(type) {
		case lifecycle.Report:
			l.report(a, act)
		case lifecycle.Start:
			if err := a.task.Start(l.group); err != nil {
				l.step(a, lifecycle.Fail{Failure: &weir.Failure{Message: err.Error()}})
				l.step(a, lifecycle.Exited{})
			}
		case lifecycle.Interrupt:
			a.task.Interrupt(errInterrupted)
			a.deadline = l.after("tm/stuck", l.o.CancelTimeout, stuck{a.id})
		case lifecycle.Release:
			a.held, a.task = false, nil
			if a.deadline != nil {
				a.deadline.Stop()
			}
		case lifecycle.Note:
			l.log.Debug(act.Text, zap.String("attempt", a.id.String()))
		}
	}
}

var states = [...]rpc.TaskState{
	lifecycle.Created: rpc.TaskDeploying, lifecycle.Initializing: rpc.TaskInitializing, lifecycle.Running: rpc.TaskRunning,
	lifecycle.Finishing: rpc.TaskRunning, lifecycle.Failing: rpc.TaskRunning, lifecycle.Canceling: rpc.TaskCanceling,
	lifecycle.Finished: rpc.TaskFinished, lifecycle.Failed: rpc.TaskFailed, lifecycle.Canceled: rpc.TaskCanceled,
}

// report tells the JobManager of an attempt's new state.
func (l *loop) report(a *attempt, r lifecycle.Report) {
	a.last = &rpc.TaskStateChanged{Attempt: a.id, State: states[r.State], Failure: r.Failure}
	fields := []zap.Field{zap.String("attempt", a.id.String()), zap.Stringer("state", a.last.State)}
	if r.Failure != nil {
		fields = append(fields, zap.Error(r.Failure))
		if r.Failure.Stack != "" {
			fields = append(fields, zap.String("stack", r.Failure.Stack))
		}
	}
	l.log.Info("task", fields...)
	l.send(*a.last)
}

// onStuck says what a task does that does not stop, and leaves it to the process: a
// goroutine cannot be ended from outside.
func (l *loop) onStuck(ev stuck) {
	a := l.attempts[ev.attempt]
	if a == nil || a.life.State().Final() || a.task == nil {
		return
	}
	err := fmt.Errorf("task %s did not stop within %v; it is in:\n%s", a.task.Name(), l.o.CancelTimeout, stackOf(a.task.Goroutine()))
	l.log.Error("user code does not return", zap.String("attempt", a.id.String()), zap.Error(err))
	l.o.Escalate(a.id, err)
}

// stackOf returns the stack of the goroutine with this name, as its profile labels have
// it.
func stackOf(name string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	for _, stanza := range strings.Split(profile.String(), "\n\n") {
		if strings.Contains(stanza, fmt.Sprintf("%q", name)) {
			return stanza
		}
	}
	return "(unknown)"
}
