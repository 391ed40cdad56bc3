package barrier

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
)

// phase is how far the pending checkpoint is.
type phase uint8

const (
	waiting    phase = iota // no barrier is in; also while nothing is pending
	collecting              // some are, and the others are waited for
	expired                 // it timed out before the first was in
	overtaking              // triggered as unaligned; missing channels are recorded
)

var phaseNames = [...]string{"waiting", "collecting", "expired", "overtaking"}

func (p phase) String() string { return phaseNames[p] }

// exactlyOnce is the handler of the modes Aligned and Alternating.
type exactlyOnce struct {
	mode             Mode
	afterTasksFinish bool
	channels         []channel
	open             int // channels that have not ended

	// current is the newest checkpoint that this handler heard of, by barrier,
	// announcement or cancellation marker; settled is the newest one that is over. A
	// checkpoint is pending while they differ.
	current, settled weir.CheckpointID

	// The rest describes the pending checkpoint.

	phase phase
	// target is the number of channels that were open when it began; aligned is
	// the number of channels that count as arrived.
	target, aligned int
	options         weir.CheckpointOptions
	progress        progress
	armed           bool // a timer is
}

// channel is what the handler knows of one channel.
type channel struct {
	ended     bool
	aligned   bool // counts as arrived for the pending checkpoint
	blocked   bool // its sender waits behind a barrier
	announced bool // a barrier of the pending checkpoint sits further back
	recording bool // what comes is captured for the pending checkpoint
}

func newExactlyOnce(o Options) *exactlyOnce {
	return &exactlyOnce{
		mode: o.Mode, afterTasksFinish: o.AfterTasksFinish,
		channels: make([]channel, o.Channels), open: o.Channels,
	}
}

func (h *exactlyOnce) isPending() bool { return h.current != h.settled }

func (h *exactlyOnce) pending() weir.CheckpointID {
	if h.isPending() {
		return h.current
	}
	return weir.NoCheckpoint
}

func (h *exactlyOnce) blocked(ch int) bool   { return h.channels[ch].blocked }
func (h *exactlyOnce) recording(ch int) bool { return h.channels[ch].recording }

// begin makes the barrier's checkpoint the pending one.
func (h *exactlyOnce) begin(b weir.Barrier) {
	h.current = b.ID
	h.options = b.Options
	h.target = h.open
	if planted.Is(planted.AlignmentSkipped) {
		h.target = 1
	}
	h.progress = progress{}
}

// learn takes what a barrier or announcement of the pending checkpoint tells. One
// producer's checkpoint may have turned unaligned where another's still could time out:
// behind edges that force both to align, the one that must not wait counts.
func (h *exactlyOnce) learn(now time.Time, b weir.Barrier) {
	h.progress.heard(now, b.Age)
	if b.Options.Alignment == weir.ForcedAligned && b.Options.Timeout == 0 {
		h.options = b.Options
	}
}

// align counts a channel as arrived, once.
func (h *exactlyOnce) align(ch int) {
	if c := &h.channels[ch]; !c.aligned {
		c.aligned = true
		h.aligned++
	}
}

// complete says whether all that is needed is in.
func (h *exactlyOnce) complete() bool { return h.aligned >= h.target }

// late says whether the pending checkpoint's time has passed, whether or not the timer
// has fired.
func (h *exactlyOnce) late(now time.Time) bool {
	return h.timed() && h.options.Timeout < h.progress.age(now)
}

func (h *exactlyOnce) timed() bool { return h.mode == Alternating && mayTimeOut(h.options) }

// arm arms the timer of the pending checkpoint, if it has one and it is not.
func (h *exactlyOnce) arm(now time.Time, acts []Action) []Action {
	if h.armed || !h.timed() {
		return acts
	}
	h.armed = true
	return append(acts, ArmTimer{h.current, max(0, h.options.Timeout-h.progress.age(now))})
}

func (h *exactlyOnce) disarm(acts []Action) []Action {
	if !h.armed {
		return acts
	}
	h.armed = false
	return append(acts, CancelTimer{h.current})
}

// settle ends the pending checkpoint: nothing is pending, aligned, recorded or timed,
// and every blocked channel is resumed.
func (h *exactlyOnce) settle(acts []Action) []Action {
	acts = h.disarm(acts)
	h.settled = h.current
	h.aligned = 0
	h.phase = waiting
	for i := range h.channels {
		c := &h.channels[i]
		c.aligned, c.announced = false, false
		if c.recording {
			c.recording = false
			acts = append(acts, StopRecording{Channel: i})
		}
	}
	for i := range h.channels {
		if c := &h.channels[i]; c.blocked {
			c.blocked = false
			acts = append(acts, Resume{i})
		}
	}
	return acts
}

// abort gives the pending checkpoint up.
func (h *exactlyOnce) abort(reason weir.FailureReason) []Action {
	return h.settle([]Action{Abort{h.current, reason}})
}

// subsume gives the pending checkpoint up, because a newer one begins.
func (h *exactlyOnce) subsume() []Action {
	if !h.isPending() {
		return nil
	}
	return h.abort(weir.CheckpointDeclinedSubsumed)
}

// check asserts what must hold between two steps.
func (h *exactlyOnce) check() {
	free, aligned := 0, 0
	for _, c := range h.channels {
		if c.aligned {
			aligned++
		}
		if !c.ended && !c.blocked {
			free++
		}
		assert.That(!c.blocked || h.isPending(), "a channel is blocked and nothing is pending")
		assert.That(!c.blocked || !c.ended, "an ended channel is blocked")
		assert.That(!c.recording || h.phase == overtaking, "a channel is recorded in phase %s", h.phase)
		assert.That(!c.recording || !c.aligned && !c.ended, "a channel is recorded behind its barrier")
	}
	assert.That(h.settled <= h.current, "settled %d is newer than current %d", h.settled, h.current)
	assert.That(h.isPending() || h.phase == waiting && !h.armed, "nothing is pending in phase %s", h.phase)
	assert.That(!h.armed || h.phase == waiting || h.phase == collecting, "a timer is armed in phase %s", h.phase)
	assert.That(aligned == h.aligned, "%d channels are aligned, counted %d", aligned, h.aligned)
	assert.That(free > 0 || h.open == 0, "all %d open channels are blocked", h.open)
}
