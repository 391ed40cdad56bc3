package barrier

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

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

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", m)
}

// Options of a handler.
type Options struct {
	// Mode is the job's; Aligned if it is not set.
	Mode Mode
	// Channels is the number of channels of all the task's gates; at least 1.
	Channels int
	// AfterTasksFinish makes an ended channel count as one that delivered the
	// barrier; otherwise its end aborts the pending checkpoint (behaviour §13).
	AfterTasksFinish bool
}

// Handler treats the barriers of one task. Only the task's goroutine may call it.
type Handler struct {
	m machine
}

// machine is a handler of one or several modes.
type machine interface {
	step(now time.Time, ev Event) []Action
	pending() weir.CheckpointID
	blocked(ch int) bool
	recording(ch int) bool
	check()
}

var (
	_ machine = (*exactlyOnce)(nil)
	_ machine = (*tracker)(nil)
)

// New returns a handler that heard of nothing yet.
func New(o Options) *Handler {
	assert.That(o.Channels > 0, "%d channels", o.Channels)
	if o.Mode == AtLeastOnce {
		return &Handler{newTracker(o)}
	}
	return &Handler{newExactlyOnce(o)}
}

// Step takes one event and says what to do. now is the task's clock, on which ages
// and durations are measured; it never goes back.
func (h *Handler) Step(now time.Time, ev Event) []Action {
	acts := h.m.step(now, ev)
	if assert.Enabled {
		h.m.check()
	}
	return acts
}

// Pending returns the newest checkpoint of which barriers are awaited, or
// NoCheckpoint. An unaligned one was triggered and is still being recorded.
func (h *Handler) Pending() weir.CheckpointID { return h.m.pending() }

// Blocked says whether the task must take nothing from behind the channel's barrier.
func (h *Handler) Blocked(ch int) bool { return h.m.blocked(ch) }

// Recording says whether what the task takes from the channel is to be captured.
func (h *Handler) Recording(ch int) bool { return h.m.recording(ch) }

func note(format string, args ...any) []Action {
	return []Action{Note{fmt.Sprintf(format, args...)}}
}
