package barrier

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
)

// Handler aligns the barriers of one task. Only the task's goroutine may call it.
type Handler struct {
	afterTasksFinish bool
	channels         []channel
	open             int // channels that have not ended

	// current is the newest checkpoint that this handler heard of, by barrier or
	// by cancellation marker; settled is the newest one that was triggered or
	// aborted. A checkpoint is pending while they differ.
	current, settled weir.CheckpointID

	// The rest describes the pending checkpoint.

	// target is the number of channels that were open when it began; aligned is
	// the number of channels that count as arrived.
	target, aligned int
	options         weir.CheckpointOptions
	// born is the checkpoint's trigger on our own clock. Barriers lose a little
	// age on each hop's wire, so the earliest time that any barrier implies is
	// the best.
	born       time.Time
	firstAt    time.Time // when its first barrier came
	firstBytes int64     // processed by then
}

// channel is what the handler knows of one channel.
type channel struct {
	ended   bool
	aligned bool // counts as arrived for the pending checkpoint
	blocked bool // its sender waits behind a barrier
}

// Mode says how a task treats barriers (behaviour §15.1).
type Mode uint8

// Modes.
const (
	// Aligned blocks the channels whose barriers are in until all are (behaviour §15.3).
	Aligned Mode = iota
	// AtLeastOnce never blocks (behaviour §15.6).
	AtLeastOnce
	// Alternating aligns, overtakes, or aligns until a timeout, as each barrier says
	// (behaviour §15.4, §15.5, §17).
	Alternating
)

var modeNames = [...]string{"aligned", "at-least-once", "alternating"}

func (m Mode) String() string { return modeNames[m] }

// Options of a handler.
type Options struct {
	Mode Mode
	// Channels is the number of channels of all the task's gates; at least 1.
	Channels int
	// AfterTasksFinish makes an ended channel count as one that delivered the
	// barrier; otherwise its end aborts the pending checkpoint (behaviour §13).
	AfterTasksFinish bool
}

// New returns a handler that heard of nothing yet.
func New(o Options) *Handler {
	assert.That(o.Channels > 0, "%d channels", o.Channels)
	return &Handler{afterTasksFinish: o.AfterTasksFinish, channels: make([]channel, o.Channels), open: o.Channels}
}

// Pending returns the checkpoint that is being aligned, or NoCheckpoint.
func (h *Handler) Pending() weir.CheckpointID {
	if h.pending() {
		return h.current
	}
	return weir.NoCheckpoint
}

// Blocked says whether the task must take nothing from the channel.
func (h *Handler) Blocked(ch int) bool { return h.channels[ch].blocked }

func (h *Handler) pending() bool { return h.current != h.settled }

// begin makes id the pending checkpoint.
func (h *Handler) begin(now time.Time, ev Barrier) {
	h.current = ev.Barrier.ID
	h.options = ev.Barrier.Options
	h.target = h.open
	if planted.Is(planted.AlignmentSkipped) {
		h.target = 1
	}
	h.born = now.Add(-ev.Barrier.Age)
	h.firstAt = now
	h.firstBytes = ev.Bytes
}

// align counts a channel as arrived, once.
func (h *Handler) align(ch int) {
	if c := &h.channels[ch]; !c.aligned {
		c.aligned = true
		h.aligned++
	}
}

// settle ends the pending checkpoint: nothing is pending, nothing is aligned, and
// every blocked channel is resumed.
func (h *Handler) settle(acts []Action) []Action {
	h.settled = h.current
	h.aligned = 0
	for i := range h.channels {
		c := &h.channels[i]
		c.aligned = false
		if c.blocked {
			c.blocked = false
			acts = append(acts, Resume{i})
		}
	}
	return acts
}

// trigger is the action that starts the pending checkpoint's snapshot.
func (h *Handler) trigger(now time.Time, bytes int64) Trigger {
	return Trigger{
		Barrier: weir.Barrier{ID: h.current, Age: max(0, now.Sub(h.born)), Options: h.options},
		Stats: Alignment{
			StartDelay: max(0, h.firstAt.Sub(h.born)),
			Duration:   max(0, now.Sub(h.firstAt)),
			Bytes:      max(0, bytes-h.firstBytes),
		},
	}
}

// check asserts what must hold between two steps.
func (h *Handler) check() {
	if !assert.Enabled {
		return
	}
	free, aligned := 0, 0
	for _, c := range h.channels {
		if c.aligned {
			aligned++
		}
		if !c.ended && !c.blocked {
			free++
		}
		assert.That(!c.blocked || h.pending(), "a channel is blocked and nothing is pending")
		assert.That(!c.blocked || !c.ended, "an ended channel is blocked")
	}
	assert.That(h.settled <= h.current, "settled %d is newer than current %d", h.settled, h.current)
	assert.That(aligned == h.aligned, "%d channels are aligned, counted %d", aligned, h.aligned)
	assert.That(free > 0 || h.open == 0, "all %d open channels are blocked", h.open)
}

// Recording says whether what the task takes from the channel is to be captured.
func (h *Handler) Recording(int) bool { return false }
