package task

import (
	"errors"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager/mailbox"
	"github.com/weirflow/weir/taskmanager/snapshot"
)

// Why something is not done.
var (
	errEnded   = errors.New("the task has ended")
	errAborted = errors.New("the checkpoint was aborted")
)

// operators are the chain as a snapshot sees it.
type operators struct{ t *Task }

// PrepareSnapshot lets operators emit before the barrier.
func (o operators) PrepareSnapshot(id weir.CheckpointID) error {
	return o.t.chain.Do("preparing a snapshot", func(c operator.Chain) error { return c.PrepareSnapshot(id) })
}

// SnapshotState returns the operators' own state.
func (o operators) SnapshotState(id weir.CheckpointID) (states []operator.State, err error) {
	err = o.t.chain.Do("taking a snapshot", func(c operator.Chain) (err error) {
		states, err = c.SnapshotState(id)
		return err
	})
	return states, err
}

// NotifyComplete tells operators of a completed checkpoint.
func (o operators) NotifyComplete(id weir.CheckpointID) error {
	defer o.t.watchNotification("a completed checkpoint", id)()
	return o.t.chain.Do("being told of a completed checkpoint", func(c operator.Chain) error { return c.NotifyComplete(id) })
}

// NotifyAborted tells operators of an aborted checkpoint.
func (o operators) NotifyAborted(id weir.CheckpointID) error {
	defer o.t.watchNotification("an aborted checkpoint", id)()
	return o.t.chain.Do("being told of an aborted checkpoint", func(c operator.Chain) error { return c.NotifyAborted(id) })
}

// reporter tells the JobManager of checkpoints.
type reporter struct{ t *Task }

// Acknowledge brings the task's part of a snapshot.
func (r reporter) Acknowledge(id weir.CheckpointID, state weir.TaskStateSnapshot, m weir.CheckpointMetrics) {
	if r.t.metrics != nil {
		r.t.metrics.ObserveCheckpoint(m)
	}
	r.t.owner.Send(rpc.AcknowledgeCheckpoint{Attempt: r.t.d.Attempt, Checkpoint: id, State: state, Metrics: m})
}

// Decline says why there is none.
func (r reporter) Decline(id weir.CheckpointID, reason weir.FailureReason, message string) {
	r.t.owner.Send(rpc.DeclineCheckpoint{Attempt: r.t.d.Attempt, Checkpoint: id, Reason: reason, Message: message})
}

// BarrierSent tells a source's coordinator that the barrier is in its output.
func (r reporter) BarrierSent(op weir.OperatorID, id weir.CheckpointID) {
	r.t.owner.Send(rpc.BarrierSent{Attempt: r.t.d.Attempt, Operator: op, Checkpoint: id})
}

// postWritten brings the end of an asynchronous part to the task.
func (t *Task) postWritten(r snapshot.Result) error { return t.box.Post(mailbox.Internal, written{r}) }

// Figures are what the task has done so far and holds now.
func (t *Task) Figures() metrics.TaskFigures {
	v := t.view.Load()
	if v == nil {
		return metrics.TaskFigures{}
	}
	times := t.split.read(time.Now())
	f := metrics.TaskFigures{
		Busy: times[busy], Idle: times[idle], HardBackPressured: times[hardBackPressured],
		BackPressured: times[softBackPressured] + times[hardBackPressured],
	}
	if at := t.lateTo.Load(); at != 0 && at != never {
		f.TimersLate = max(0, time.Since(time.UnixMilli(at)))
	}
	if v.in != nil {
		f.RecordsIn, f.BytesIn = v.in.Records(), v.in.Bytes()
	}
	for _, g := range v.io.Inputs {
		f.QueuedIn += g.QueuedBytes()
		f.BuffersInUse += int64(g.BuffersInUse())
		f.InPoolUsage = max(f.InPoolUsage, g.PoolUsage())
	}
	for _, o := range v.outputs {
		f.RecordsOut += o.p.Records()
		f.BytesOut += o.p.Bytes()
		f.QueuedOut += o.p.QueuedBytes()
		f.BuffersInUse += int64(o.p.BuffersInUse())
		f.OutPoolUsage = max(f.OutPoolUsage, o.p.PoolUsage())
	}
	for _, c := range v.chain.Counts() {
		f.Operators = append(f.Operators, metrics.OperatorFigures{Operator: c.Operator, RecordsIn: c.RecordsIn, RecordsOut: c.RecordsOut})
	}
	return f
}

// showFigures adds the task to the process's metrics.
func (t *Task) showFigures() {
	if t.r.Metrics == nil {
		return
	}
	t.metrics = t.r.Metrics.AddTask(metrics.TaskLabels{
		Job: t.d.Attempt.Job, JobName: t.d.JobName, Vertex: t.vertex.Name, Subtask: int(t.d.Attempt.Subtask),
	}, t.Figures)
}

// userMetrics are the metrics of an operator's user code.
func (t *Task) userMetrics(name string) operator.Metrics {
	if t.metrics == nil {
		return userMetrics{}
	}
	return userMetrics{t.metrics.Operator(name)}
}

// userMetrics fits metrics to the operator's contract; without a registry they go
// nowhere.
type userMetrics struct{ o *metrics.Operator }

// Counter returns a counter.
func (m userMetrics) Counter(name string) operator.Counter {
	if m.o == nil {
		return &metrics.Counter{}
	}
	return m.o.Counter(name)
}

// Gauge returns a gauge.
func (m userMetrics) Gauge(name string) operator.Gauge {
	if m.o == nil {
		return &metrics.Gauge{}
	}
	return m.o.Gauge(name)
}
