package barrier

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// noChannel stands for the channel whose barrier makes a checkpoint overtake, where
// something else does.
const noChannel = -1

// mustOvertake says whether a barrier that just came in ends the waiting for others.
func (h *exactlyOnce) mustOvertake(now time.Time, ev Barrier) bool {
	switch {
	case h.mode != Alternating:
		return false
	case ev.Barrier.Options.Alignment == weir.Unaligned, h.phase == expired:
		return true
	}
	return !h.complete() && h.late(now)
}

// overtake triggers the pending checkpoint as an unaligned one and records the channels
// whose barriers are missing. Also the one whose barrier is in now is recorded, since
// that may have overtaken what is queued. The barriers that came before were aligned:
// all before them is processed.
func (h *exactlyOnce) overtake(now time.Time, bytes int64, ch int, before []Action) []Action {
	h.phase = overtaking
	stats := h.progress.alignment(now, bytes)
	stats.Overtook = true
	acts := append([]Action{Trigger{
		Barrier: weir.Barrier{ID: h.current, Age: h.progress.age(now), Options: unaligned(h.options)},
		Stats:   stats,
	}}, before...)
	acts = h.toHeads(h.disarm(acts))
	for i := range h.channels {
		if c := &h.channels[i]; !c.ended && (!c.aligned || i == ch) {
			c.recording = true
			acts = append(acts, Record{i})
		}
	}
	if ch == noChannel {
		return h.recordedIfComplete(now, bytes, acts)
	}
	return h.arrived(now, bytes, ch, acts)
}

// toHeads moves the barriers that were announced to the heads of their queues.
func (h *exactlyOnce) toHeads(acts []Action) []Action {
	for i := range h.channels {
		if c := &h.channels[i]; c.announced {
			c.announced = false
			acts = append(acts, ToHead{i, h.current})
		}
	}
	return acts
}

// arrived ends the recording of a channel whose barrier is in or that ended. One whose
// sender has stopped stays blocked until the last barrier is in.
func (h *exactlyOnce) arrived(now time.Time, bytes int64, ch int, acts []Action) []Action {
	c := &h.channels[ch]
	if c.recording {
		c.recording = false
		acts = append(acts, StopRecording{Channel: ch, Arrived: true})
	}
	if c.blocked && !h.complete() {
		acts = append(acts, Block{ch})
	}
	return h.recordedIfComplete(now, bytes, acts)
}

func (h *exactlyOnce) recordedIfComplete(now time.Time, bytes int64, acts []Action) []Action {
	if h.complete() {
		stats := h.progress.alignment(now, bytes)
		stats.Overtook = true
		return h.settle(append(acts, Recorded{h.current, stats}))
	}
	if len(acts) == 0 {
		return note("%d of %d channels have arrived", h.aligned, h.target)
	}
	return acts
}

// onTimer gives the waiting up. Without a barrier that could be sent on there is no
// trigger yet.
func (h *exactlyOnce) onTimer(now time.Time, ev Timer) []Action {
	if !h.armed || ev.ID != h.current {
		return note("old timer of checkpoint %d", ev.ID)
	}
	h.armed = false
	if h.phase == collecting {
		return h.overtake(now, ev.Bytes, noChannel, nil)
	}
	h.phase = expired
	if acts := h.toHeads(nil); len(acts) > 0 {
		return acts
	}
	return note("checkpoint %d timed out before its first barrier", ev.ID)
}

func (h *exactlyOnce) onAnnouncement(now time.Time, ev Announcement) []Action {
	id, c := ev.Barrier.ID, &h.channels[ev.Channel]
	switch {
	case h.mode == Aligned:
		return note("announcement of checkpoint %d: alignment does not time out", id)
	case c.ended, h.over(id), id == h.current && (c.aligned || c.announced):
		return note("announcement of checkpoint %d on channel %d changes nothing", id, ev.Channel)
	}
	var acts []Action
	if id > h.current {
		acts = h.subsume()
		h.begin(ev.Barrier)
	}
	h.learn(now, ev.Barrier)
	if h.phase == expired || h.phase == overtaking {
		return append(acts, ToHead{ev.Channel, id})
	}
	c.announced = true
	acts = h.arm(now, acts)
	return append(acts, Note{fmt.Sprintf("barrier %d sits further back in channel %d", id, ev.Channel)})
}
