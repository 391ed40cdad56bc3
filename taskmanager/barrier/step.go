package barrier

import (
	"time"

	"github.com/weirflow/weir"
)

func (h *exactlyOnce) step(now time.Time, ev Event) []Action {
	switch ev := ev.(type) {
	case Barrier:
		return h.onBarrier(now, ev)
	case Cancellation:
		return h.onCancellation(ev)
	case Announcement:
		return h.onAnnouncement(now, ev)
	case EndOfPartition:
		return h.onEnd(now, ev)
	case Timer:
		return h.onTimer(now, ev)
	case GivenUp:
		if ev.ID != h.pending() {
			return note("%s: it is not pending", ev)
		}
		return h.abort(ev.Reason)
	}
	return note("unknown event %s", ev)
}

func (h *exactlyOnce) onBarrier(now time.Time, ev Barrier) []Action {
	id, c := ev.Barrier.ID, &h.channels[ev.Channel]
	blocks := stops(ev, h.mode)
	switch {
	case c.ended:
		return note("barrier %d on the ended channel %d", id, ev.Channel)
	case h.over(id):
		return h.onStale(ev, blocks)
	case id == h.current && c.aligned:
		return h.onSecond(ev, blocks)
	}
	var acts []Action
	if id > h.current {
		acts = h.subsume()
		h.begin(ev.Barrier)
	}
	h.learn(now, ev.Barrier)
	h.progress.met(now, ev.Bytes)
	h.align(ev.Channel)
	c.announced = false
	c.blocked = blocks
	switch {
	case h.phase == overtaking:
		return h.arrived(now, ev.Bytes, ev.Channel, acts)
	case h.mustOvertake(now, ev):
		return h.overtake(now, ev.Bytes, ev.Channel, acts)
	case h.complete():
		return h.trigger(now, ev.Bytes, acts)
	}
	h.phase = collecting
	acts = h.arm(now, acts)
	if blocks {
		return append(acts, Block{ev.Channel})
	}
	return append(acts, note("barrier %d on channel %d, %d of %d channels have arrived", id, ev.Channel, h.aligned, h.target)...)
}

// onSecond answers a barrier on a channel that counts as arrived. It counts once, but
// its sender may have stopped only now.
func (h *exactlyOnce) onSecond(ev Barrier, blocks bool) []Action {
	c := &h.channels[ev.Channel]
	if c.blocked || !blocks {
		return note("second barrier %d on channel %d", ev.Barrier.ID, ev.Channel)
	}
	c.blocked = true
	return []Action{Block{ev.Channel}}
}

// over says whether a checkpoint is of no interest any more.
func (h *exactlyOnce) over(id weir.CheckpointID) bool {
	return id < h.current || id == h.current && !h.isPending()
}

// onStale lets the sender go on that stopped behind a barrier nobody waits for. A
// channel that is blocked for a newer checkpoint stays so.
func (h *exactlyOnce) onStale(ev Barrier, blocks bool) []Action {
	switch {
	case !blocks:
		return note("old barrier %d on channel %d", ev.Barrier.ID, ev.Channel)
	case h.channels[ev.Channel].blocked:
		return note("old barrier %d on channel %d, blocked for %d", ev.Barrier.ID, ev.Channel, h.current)
	}
	return []Action{Resume{ev.Channel}}
}

// trigger starts the snapshot of the pending checkpoint, whose barriers are all in.
// What was to be done before, if anything, comes after the trigger: it concerns an
// older checkpoint, which the newer one makes void everywhere.
func (h *exactlyOnce) trigger(now time.Time, bytes int64, before []Action) []Action {
	stats := h.progress.alignment(now, bytes)
	b := weir.Barrier{ID: h.current, Age: h.progress.age(now), Options: h.options}
	if h.mode == Alternating {
		b.Options = turnedBack(b.Options)
	}
	acts := append([]Action{Trigger{Barrier: b, Stats: stats}}, before...)
	if b.Options.Alignment == weir.Unaligned {
		acts = append(acts, Recorded{h.current, stats})
	}
	return h.settle(acts)
}

// onCancellation acts on a marker for a newer checkpoint, or for the pending one. An
// older pending one is dropped without a report of its own.
func (h *exactlyOnce) onCancellation(ev Cancellation) []Action {
	if h.over(ev.ID) {
		return note("cancellation of checkpoint %d, which is over", ev.ID)
	}
	acts := h.disarm([]Action{Abort{ev.ID, weir.CheckpointDeclinedOnCancellationBarrier}})
	h.current = ev.ID
	return h.settle(acts)
}

func (h *exactlyOnce) onEnd(now time.Time, ev EndOfPartition) []Action {
	c := &h.channels[ev.Channel]
	if c.ended {
		return note("channel %d ended twice", ev.Channel)
	}
	c.ended = true
	c.blocked = false // nobody is left to resume
	c.announced = false
	h.open--
	switch {
	case !h.isPending():
		return note("channel %d ended, %d are open", ev.Channel, h.open)
	case !h.afterTasksFinish:
		return h.abort(weir.CheckpointDeclinedInputEndOfStream)
	}
	h.align(ev.Channel)
	switch {
	case h.phase == overtaking:
		return h.arrived(now, ev.Bytes, ev.Channel, nil)
	case h.complete() && h.phase == expired, !h.complete() && h.phase == collecting && h.late(now):
		return h.overtake(now, ev.Bytes, noChannel, nil)
	case h.complete():
		return h.trigger(now, ev.Bytes, nil)
	}
	return note("channel %d ended, %d of %d channels have arrived", ev.Channel, h.aligned, h.target)
}
