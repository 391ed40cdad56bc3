package task

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager/mailbox"
	"github.com/weirflow/weir/taskmanager/snapshot"
)

// letter is what somebody wants of the task.
//
//sumtype:decl
type letter interface{ letter() }

type (
	// trigger starts a checkpoint at a source.
	trigger struct {
		barrier weir.Barrier
		at      time.Time // when it came: what it waited is added to the barrier's age
	}
	// complete and aborted tell of a checkpoint's end.
	complete struct{ id weir.CheckpointID }
	aborted  struct{ id, latest weir.CheckpointID }
	// event is an event of an operator's coordinator.
	event struct {
		operator weir.OperatorID
		seq      uint64
		bytes    []byte
	}
	// written is the end of an asynchronous part.
	written struct{ result snapshot.Result }
	// captured is the end of a checkpoint's channel state.
	captured struct {
		id  weir.CheckpointID
		err error
	}
	// settled says that an output hands over no more for a checkpoint.
	settled struct{ id weir.CheckpointID }
	// timeout says that a checkpoint's barriers are late: at the inputs, or in the outputs.
	timeout struct {
		id      weir.CheckpointID
		outputs bool
	}
	// alarm says that timers may be due, resize that the size of segments may be wrong.
	alarm  struct{}
	resize struct{}
)

func (trigger) letter()  {}
func (complete) letter() {}
func (aborted) letter()  {}
func (event) letter()    {}
func (written) letter()  {}
func (captured) letter() {}
func (settled) letter()  {}
func (timeout) letter()  {}
func (alarm) letter()    {}
func (resize) letter()   {}

// Trigger starts a checkpoint. It is refused if the mailbox is full or closed.
func (t *Task) Trigger(b weir.Barrier) error {
	p := mailbox.Normal
	if b.Options.Alignment == weir.Unaligned {
		p = mailbox.Urgent
	}
	if err := t.box.Post(p, trigger{barrier: b, at: time.Now()}); err != nil {
		return err
	}
	t.hasten()
	return nil
}

// NotifyComplete tells the task of a completed checkpoint. Notifications are not
// repeated: one that finds no room is lost.
func (t *Task) NotifyComplete(id weir.CheckpointID) {
	_ = t.box.Post(mailbox.Notification, complete{id})
}

// NotifyAborted tells the task of an aborted checkpoint, and of the latest complete one.
func (t *Task) NotifyAborted(id, latest weir.CheckpointID) {
	_ = t.box.Post(mailbox.Notification, aborted{id, latest})
}

// OperatorEvent brings an event to an operator; it is confirmed once the operator
// has taken it. An error means that it will not be.
func (t *Task) OperatorEvent(op weir.OperatorID, seq uint64, bytes []byte) error {
	return t.box.Post(mailbox.Normal, event{op, seq, bytes})
}

// read does what the letters say, until none is left.
func (t *Task) read(ctx context.Context) error {
	for {
		l, ok := t.box.Take()
		if !ok {
			return nil
		}
		if err := t.obey(ctx, l); err != nil {
			return err
		}
	}
}

func (t *Task) obey(ctx context.Context, l letter) error {
	switch l := l.(type) {
	case trigger:
		return t.onTrigger(ctx, l)
	case complete:
		return t.onComplete(l.id)
	case aborted:
		return t.onAborted(ctx, l)
	case event:
		return t.onEvent(l)
	case written:
		t.snapshot.Done(ctx, l.result)
	case captured:
		return t.onCaptured(ctx, l)
	case settled:
		t.snapshot.Decided(l.id)
	case timeout:
		return t.onTimeout(ctx, l)
	case alarm:
		t.timersDue = true
		t.lateTo.Store(t.earliest())
	case resize:
		t.resize()
	}
	return nil
}

// onTrigger starts a checkpoint at a source. A task whose producers have finished
// starts it once it has processed all that they left (behaviour §13). One whose outputs
// have ended has nowhere to send the barrier to.
func (t *Task) onTrigger(ctx context.Context, l trigger) error {
	id := l.barrier.ID
	switch {
	case t.ended:
		reporter{t}.Decline(id, weir.CheckpointDeclinedTaskClosing, errEnded.Error())
		return nil
	case l.barrier.Options.Alignment == weir.Unaligned && t.channels.writer == nil:
		reporter{t}.Decline(id, weir.CheckpointDeclined, "unaligned checkpoints are not enabled for the job")
		return nil
	}
	if t.in != nil && !t.in.Ended() {
		t.logger.Debug("checkpoint waits for the end of input", zap.Int64("checkpoint", int64(id)))
		if old := t.held; old != nil {
			reporter{t}.Decline(old.barrier.ID, weir.CheckpointDeclinedSubsumed, "")
		}
		t.held = &l
		return nil
	}
	b := l.barrier
	b.Age += time.Since(l.at)
	if b.Options.Kind.IsSynchronous() {
		if err := t.stopReading(b); err != nil {
			return err
		}
	}
	m := weir.CheckpointMetrics{StartDelay: b.Age, Unaligned: b.Options.Alignment == weir.Unaligned}
	if err := t.take(ctx, b, m); err != nil {
		return err
	}
	t.snapshot.InputCaptured(b.ID) // there is none
	return nil
}

func (t *Task) onEvent(l event) error {
	err := t.chain.Do("handling an event of the coordinator", func(c operator.Chain) error {
		return c.HandleEvent(l.operator, l.bytes)
	})
	t.confirm(l, err)
	t.sourceUp.Store(true)
	return err
}

func (t *Task) confirm(l event, err error) {
	ack := rpc.OperatorEventAck{Attempt: t.d.Attempt, Seq: l.seq}
	if err != nil {
		ack.Error = err.Error()
	}
	t.owner.Send(ack)
}
