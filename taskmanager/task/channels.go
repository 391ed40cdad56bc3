package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/taskmanager/barrier"
	"github.com/weirflow/weir/taskmanager/chanstate"
	"github.com/weirflow/weir/taskmanager/mailbox"
	"github.com/weirflow/weir/taskmanager/snapshot"
)

// channels are the task's part in unaligned checkpoints: the writer of what is in flight,
// and the names of the channels. All of it is zero if the job's checkpoints never
// overtake data.
type channels struct {
	writer  *chanstate.Subtask
	inputs  []weir.EdgeID
	outputs []weir.EdgeID
}

// prepareChannels joins the writer of channel state.
func (t *Task) prepareChannels() error {
	o := t.d.Options
	if !o.Unaligned || o.AtLeastOnce {
		return nil
	}
	w, err := t.r.Channels.Join(chanstate.Options{
		Attempt: t.d.Attempt, Store: t.r.Store, Directory: t.d.Directory,
		Subtasks: o.ChannelStateSubtasks, Memory: o.ChannelStateMemory, Done: t.postCaptured,
	})
	if err != nil {
		return fmt.Errorf("channel state: %w", err)
	}
	t.channels.writer = w
	for _, in := range t.d.Inputs {
		t.channels.inputs = append(t.channels.inputs, t.d.Graph.Edges[in.Edge].ID())
	}
	for _, out := range t.d.Outputs {
		t.channels.outputs = append(t.channels.outputs, t.d.Graph.Edges[out.Edge].ID())
	}
	return nil
}

// postCaptured takes the end of a checkpoint's channel state, which may complete the
// checkpoint, and tells the task. It is called by the writer.
func (t *Task) postCaptured(r chanstate.Result) {
	c := snapshot.Channels{ID: r.ID, Handles: r.Channels, Bytes: r.Bytes}
	if r.Err != nil {
		reason := weir.CheckpointAsyncException
		if e, ok := errors.AsType[*chanstate.Error](r.Err); ok {
			reason = e.Reason
		}
		c.Err = &snapshot.ReasonError{Reason: reason, Err: r.Err}
		t.logger.Debug("channel state", zap.Int64("checkpoint", int64(r.ID)), zap.Error(r.Err))
	}
	t.snapshot.Captured(context.Background(), c)
	_ = t.box.Post(mailbox.Internal, captured{r.ID, c.Err})
}

// onCaptured hears of the end of a checkpoint's channel state. If it failed, there is
// nothing left to record for.
func (t *Task) onCaptured(ctx context.Context, l captured) error {
	t.snapshot.ChannelState(l.id, l.err)
	return t.giveUp(ctx, l.id, l.err)
}

// giveUp lets the input not wait for the barriers of a checkpoint that has failed, nor
// record for it.
func (t *Task) giveUp(ctx context.Context, id weir.CheckpointID, cause error) error {
	if cause == nil || t.in == nil || t.in.Pending() != id {
		return nil
	}
	return t.in.GiveUp(ctx, id, weir.CheckpointDeclined)
}

// onAborted takes the JobManager's word that a checkpoint is over.
func (t *Task) onAborted(ctx context.Context, l aborted) error {
	if err := t.stopFailed(l.id); err != nil {
		return err
	}
	if err := t.snapshot.NotifyAborted(l.id, l.latest); err != nil {
		return err
	}
	t.ending.completed(l.latest)
	return t.giveUp(ctx, l.id, errAborted)
}

// barriers are the task's outputs as a snapshot sees them.
type barriers struct{ t *Task }

// Barrier sends a barrier: how is what its options and the edge say.
func (b barriers) Barrier(w weir.Barrier) (undecided int) {
	if b.t.ended {
		return 0
	}
	for i, o := range b.t.outputs {
		if o.p.BroadcastBarrier(w, b.t.capture(i, w.ID)) {
			undecided++
		}
	}
	return undecided
}

// capture hands what a barrier overtakes in an output to the writer.
func (t *Task) capture(output int, id weir.CheckpointID) partition.Capture {
	return func(subpartition int, base int64, b []byte) {
		if t.snapshot.Capturing(id) {
			t.channels.writer.Output(id, t.channels.outputs[output], int32(t.d.Outputs[output].Consumers[subpartition].Attempt.Subtask), base, b)
		}
	}
}

// TimeoutBarrier lets a barrier overtake wherever it was not read yet.
func (b barriers) TimeoutBarrier(id weir.CheckpointID) {
	for i, o := range b.t.outputs {
		o.p.TimeoutBarrier(id, b.t.capture(i, id))
	}
}

// AbortBarrier lets a barrier stay where it is.
func (b barriers) AbortBarrier(id weir.CheckpointID) {
	for _, o := range b.t.outputs {
		o.p.AbortBarrier(id)
	}
}

// ArmTimer arms the outputs' timer.
func (b barriers) ArmTimer(id weir.CheckpointID, after time.Duration) {
	b.t.outputTimer.arm(b.t, after, timeout{id: id, outputs: true})
}

// DisarmTimer calls it off.
func (b barriers) DisarmTimer() { b.t.outputTimer.disarm() }

// deadline is a timer that posts a letter. One that fired before it was disarmed is known
// by the letter's checkpoint.
type deadline struct{ timer *group.Timer }

func (d *deadline) arm(t *Task, after time.Duration, l timeout) {
	d.disarm()
	d.timer = t.group.AfterFunc("task/timeout", after, func(context.Context) {
		_ = t.box.Post(mailbox.Urgent, l)
		t.hasten()
	})
}

func (d *deadline) disarm() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (t *Task) onTimeout(ctx context.Context, l timeout) error {
	switch {
	case l.outputs:
		t.snapshot.Timeout(l.id)
	case t.in != nil:
		return t.in.Timeout(ctx, l.id)
	}
	return nil
}

// decided is called by an output, from any goroutine.
func (t *Task) decided(_ int, id weir.CheckpointID) { _ = t.box.Post(mailbox.Internal, settled{id}) }

// Capture hands what was in flight in an input to the writer.
func (s sink) Capture(id weir.CheckpointID, input, channel int, base int64, b []byte) {
	t := s.t
	if t.snapshot.Capturing(id) {
		t.channels.writer.Input(id, t.channels.inputs[input], t.d.Inputs[input].Channels[channel].Producer.Subtask, base, b)
	}
}

// Captured says that all input of a checkpoint is captured.
func (s sink) Captured(id weir.CheckpointID, a barrier.Alignment) {
	if a.Overtook {
		s.t.snapshot.Aligned(id, a.Duration, a.Bytes)
	}
	s.t.snapshot.InputCaptured(id)
}

// ArmTimer arms the timer of an alignment.
func (s sink) ArmTimer(id weir.CheckpointID, after time.Duration) {
	s.t.inputTimer.arm(s.t, after, timeout{id: id})
}

// Hurry makes the task look at what overtakes.
func (s sink) Hurry() { s.t.hurry() }

// CancelTimer calls it off.
func (s sink) CancelTimer(weir.CheckpointID) { s.t.inputTimer.disarm() }
