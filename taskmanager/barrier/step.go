package barrier

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// Step takes one event and says what to do. now is the task's clock, on which ages
// and durations are measured; it never goes back.
func (h *Handler) Step(now time.Time, ev Event) []Action {
	var acts []Action
	switch ev := ev.(type) {
	case Barrier:
		acts = h.onBarrier(now, ev)
	case Cancellation:
		acts = h.onCancellation(ev)
	case Announcement:
		acts = note("announcement of checkpoint %d: alignment does not time out", ev.Barrier.ID)
	case EndOfPartition:
		acts = h.onEnd(now, ev)
	case Timer, GivenUp:
		acts = note("%s: nothing is timed here", ev)
	}
	h.check()
	return acts
}

func (h *Handler) onBarrier(now time.Time, ev Barrier) []Action {
	id, c := ev.Barrier.ID, &h.channels[ev.Channel]
	switch {
	case c.ended:
		return note("barrier %d on the ended channel %d", id, ev.Channel)
	case id < h.current || id == h.current && !h.pending():
		return h.onStale(ev)
	case id == h.current && c.blocked:
		return note("second barrier %d on channel %d", id, ev.Channel)
	}
	var acts []Action
	if id > h.current {
		acts = h.subsume()
		h.begin(now, ev)
	}
	if born := now.Add(-ev.Barrier.Age); born.Before(h.born) {
		h.born = born
	}
	h.align(ev.Channel)
	c.blocked = true
	if h.aligned < h.target {
		return append(acts, Block{ev.Channel})
	}
	return h.complete(now, ev.Bytes, acts)
}

// onStale lets the sender go on that stopped behind a barrier nobody waits for. A
// channel that is blocked for a newer checkpoint stays so.
func (h *Handler) onStale(ev Barrier) []Action {
	if h.channels[ev.Channel].blocked {
		return note("old barrier %d on channel %d, blocked for %d", ev.Barrier.ID, ev.Channel, h.current)
	}
	return []Action{Resume{ev.Channel}}
}

// subsume gives the pending checkpoint up, because a newer one begins.
func (h *Handler) subsume() []Action {
	if !h.pending() {
		return nil
	}
	return h.settle([]Action{Abort{h.current, weir.CheckpointDeclinedSubsumed}})
}

// complete triggers the pending checkpoint. What was to be done before, if
// anything, comes after the trigger: it concerns an older checkpoint, which the
// newer one makes void everywhere.
func (h *Handler) complete(now time.Time, bytes int64, before []Action) []Action {
	acts := append([]Action{h.trigger(now, bytes)}, before...)
	return h.settle(acts)
}

// onCancellation acts on a marker for a newer checkpoint, or for the pending one. An
// older pending one is dropped without a report of its own.
func (h *Handler) onCancellation(ev Cancellation) []Action {
	if ev.ID < h.current || ev.ID == h.current && !h.pending() {
		return note("cancellation of checkpoint %d, which is over", ev.ID)
	}
	h.current = ev.ID
	return h.settle([]Action{Abort{ev.ID, weir.CheckpointDeclinedOnCancellationBarrier}})
}

func (h *Handler) onEnd(now time.Time, ev EndOfPartition) []Action {
	c := &h.channels[ev.Channel]
	if c.ended {
		return note("channel %d ended twice", ev.Channel)
	}
	c.ended = true
	c.blocked = false // nobody is left to resume
	h.open--
	switch {
	case !h.pending():
		return note("channel %d ended, %d are open", ev.Channel, h.open)
	case !h.afterTasksFinish:
		return h.settle([]Action{Abort{h.current, weir.CheckpointDeclinedInputEndOfStream}})
	}
	h.align(ev.Channel)
	if h.aligned < h.target {
		return note("channel %d ended, %d of %d channels have arrived", ev.Channel, h.aligned, h.target)
	}
	return h.complete(now, ev.Bytes, nil)
}

func note(format string, args ...any) []Action {
	return []Action{Note{fmt.Sprintf(format, args...)}}
}
