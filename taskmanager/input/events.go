package input

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/taskmanager/barrier"
	"github.com/weirflow/weir/taskmanager/watermark"
)

// element acts on an element of the current channel that is no record.
func (g *CheckpointedGate) element(e wire.Element) error {
	switch e.Kind {
	case wire.KindWatermark:
		return g.change(g.valve.Watermark(g.current, weir.Watermark(e.Timestamp)))
	case wire.KindIdle:
		return g.change(g.valve.Idle(g.current))
	case wire.KindActive:
		return g.change(g.valve.Active(g.current))
	}
	return g.fail(g.current, fmt.Errorf("element of kind %s", e.Kind))
}

// change passes on what the valve says, the watermark first.
func (g *CheckpointedGate) change(c watermark.Change) error {
	if c.Advanced {
		if err := g.sink.Watermark(c.Watermark); err != nil {
			return err
		}
	}
	if c.Toggled {
		return g.sink.Status(c.Idle)
	}
	return nil
}

// event acts on an event of a channel.
func (g *CheckpointedGate) event(ctx context.Context, ch int, item gate.Item) error {
	decoded, err := wire.DecodeEvent(item.Event)
	if err != nil {
		return g.fail(ch, err)
	}
	ev, isBarrier := decoded.(wire.Barrier)
	overtakes := item.Type == wire.TypePriorityEvent
	switch {
	case overtakes && !isBarrier:
		return g.fail(ch, fmt.Errorf("unexpected %s with priority", decoded))
	case item.Announcement && planted.Is(planted.AnnouncementLost):
		return nil
	case item.Announcement:
		b := weir.Barrier(ev)
		b.Age += item.Spent
		g.announced(ch, b.ID)
		return g.step(ctx, barrier.Announcement{Channel: ch, Barrier: b}, gate.Item{})
	case !overtakes && uncut(&g.channels[ch].cutter) > 0 && (!isBarrier || ev.ID > g.channels[ch].moved):
		return g.fail(ch, fmt.Errorf("%w: %s", ErrHalfRecord, decoded))
	}
	switch ev := decoded.(type) {
	case wire.Barrier:
		if !g.legal(ev, item.Type) {
			return g.fail(ch, fmt.Errorf("unexpected %s as %s", decoded, item.Type))
		}
		b := weir.Barrier(ev)
		b.Age += item.Spent
		g.meter.Barrier(g.now(), ch, b)
		return g.step(ctx, barrier.Barrier{Channel: ch, Barrier: b, Bytes: g.meter.Total()}, item)
	case wire.CancelBarrier:
		return g.step(ctx, barrier.Cancellation{Channel: ch, ID: ev.ID}, gate.Item{})
	case wire.EndOfData:
		g.suspended = g.suspended || !ev.Drain
		return g.endOfData(ch)
	case wire.EndOfPartition:
		return g.endOfPartition(ctx, ch)
	case wire.EndOfChannelState:
	}
	return g.fail(ch, fmt.Errorf("unexpected %s", decoded))
}

// legal says whether a barrier came as what its options say, in a job that has such ones
// (behaviour §15.7).
func (g *CheckpointedGate) legal(b wire.Barrier, as wire.DataType) bool {
	switch b.Options.Alignment {
	case weir.Aligned, weir.ForcedAligned:
		return as.Blocks()
	case weir.Unaligned:
		return as == wire.TypePriorityEvent && g.mode == barrier.Alternating
	case weir.AtLeastOnce:
		return as == wire.TypeEvent && g.mode == barrier.AtLeastOnce
	}
	return false
}

// Timeout says that the timer of a checkpoint fired which ArmTimer had armed.
func (g *CheckpointedGate) Timeout(ctx context.Context, id weir.CheckpointID) error {
	return g.step(ctx, barrier.Timer{ID: id, Bytes: g.meter.Total()}, gate.Item{})
}

// GiveUp says that the task cannot go on with a checkpoint.
func (g *CheckpointedGate) GiveUp(ctx context.Context, id weir.CheckpointID, reason weir.FailureReason) error {
	return g.step(ctx, barrier.GivenUp{ID: id, Reason: reason}, gate.Item{})
}

// Pending is the checkpoint of which barriers are awaited, or NoCheckpoint.
func (g *CheckpointedGate) Pending() weir.CheckpointID { return g.handler.Pending() }

// step steps the barrier handler and does what it says. item is what was polled last, if
// the event is a barrier.
func (g *CheckpointedGate) step(ctx context.Context, ev barrier.Event, item gate.Item) error {
	now := g.now()
	late := false
	for _, a := range g.handler.Step(now, ev) {
		switch a := a.(type) {
		case barrier.Trigger:
			g.triggered = a.Barrier.ID
			if err := g.sink.Trigger(ctx, a.Barrier, g.metrics(now, a)); err != nil {
				return err
			}
		case barrier.Block:
			// The sender has stopped behind its barrier: the gate brings nothing.
		case barrier.Resume:
			c := &g.channels[a.Channel]
			g.gates[c.gate].Resume(c.local)
		case barrier.Record:
			late = g.record(a.Channel) || late
		case barrier.StopRecording:
			g.stopRecording(a, item)
		case barrier.Recorded:
			g.sink.Captured(a.ID, a.Stats)
		case barrier.ToHead:
			g.toHead(a.Channel, a.ID)
		case barrier.ArmTimer:
			g.sink.ArmTimer(a.ID, a.After)
		case barrier.CancelTimer:
			g.sink.CancelTimer(a.ID)
		case barrier.Abort:
			g.sink.Abort(a.ID, a.Reason)
			g.letPass(a.ID)
		case barrier.Note:
		}
	}
	if late {
		return g.GiveUp(ctx, g.triggered, weir.CheckpointSubsumed)
	}
	return nil
}

// metrics are the figures of a checkpoint that are known when it is triggered.
func (g *CheckpointedGate) metrics(now time.Time, t barrier.Trigger) weir.CheckpointMetrics {
	var last weir.LastBarrier
	if ch, queued := g.meter.Last(t.Barrier.ID); ch >= 0 {
		c := &g.channels[ch]
		last = weir.LastBarrier{Came: true, Input: int32(c.gate), Channel: int32(c.local), Queued: queued}
	}
	return weir.CheckpointMetrics{
		LastBarrier:       last,
		StartDelay:        t.Stats.StartDelay,
		AlignmentDuration: t.Stats.Duration,
		AlignedBytes:      t.Stats.Bytes,
		QueuedBytes:       g.meter.Queued(t.Barrier.ID),
		DrainRate:         g.meter.Rate(now.Add(-t.Barrier.Age)),
		Unaligned:         t.Stats.Overtook,
	}
}

// endOfData notes that a channel brings no more records; the last one of a gate ends
// the input.
func (g *CheckpointedGate) endOfData(ch int) error {
	c := &g.channels[ch]
	if c.dataEnd {
		return nil
	}
	c.dataEnd = true
	source := &g.gates[c.gate]
	source.data--
	if source.data > 0 {
		return nil
	}
	return g.sink.EndOfInput(c.gate)
}

// endOfPartition closes a channel.
func (g *CheckpointedGate) endOfPartition(ctx context.Context, ch int) error {
	c := &g.channels[ch]
	c.ended = true
	source := &g.gates[c.gate]
	source.open--
	source.End(c.local)
	if err := g.change(g.valve.Ended(ch)); err != nil {
		return err
	}
	if err := g.endOfData(ch); err != nil {
		return err
	}
	return g.step(ctx, barrier.EndOfPartition{Channel: ch, Bytes: g.meter.Total()}, gate.Item{})
}
