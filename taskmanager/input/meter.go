package input

import (
	"time"

	"github.com/weirflow/weir"
)

// rateWindow is how far before a checkpoint's trigger the drain rate looks.
const rateWindow = 5 * time.Second

// Meter knows how many bytes a task had processed of each channel, and how long it had
// been idle, at any time. It is for the task's goroutine.
type Meter struct {
	start    time.Time
	channels []metered
	total    metered
	idle     metered       // nanoseconds
	last     time.Duration // since start, of the last call: what is processed next began then

	checkpoint weir.CheckpointID // that queued counts for
	queued     int64
	lastQueued int64 // of the barrier that came last, and its channel
	lastCame   int
}

// metered is a number that grows, with its past.
type metered struct {
	now  int64
	past history
}

// NewMeter returns a meter that begins now.
func NewMeter(now time.Time, channels int) *Meter {
	return &Meter{start: now, channels: make([]metered, channels)}
}

// Processed notes that this many more bytes of a channel have been processed.
func (m *Meter) Processed(now time.Time, channel int, bytes int64) {
	at := now.Sub(m.start)
	m.channels[channel].grow(m.last, at, bytes)
	m.total.grow(m.last, at, bytes)
	m.last = at
}

// grow adds what came evenly from one time to another.
func (c *metered) grow(from, to time.Duration, n int64) {
	c.past.add(from, c.now)
	c.now += n
	c.past.add(to, c.now)
}

// Idle notes that the task waited for input from one time to another.
func (m *Meter) Idle(from, to time.Time) {
	m.last = to.Sub(m.start)
	m.idle.grow(from.Sub(m.start), m.last, int64(max(0, to.Sub(from))))
}

// Total is the number of bytes processed of all channels.
func (m *Meter) Total() int64 { return m.total.now }

// Barrier notes that a channel's barrier came: what was processed of the channel since
// the checkpoint's trigger was queued ahead of it.
func (m *Meter) Barrier(now time.Time, channel int, b weir.Barrier) {
	if b.ID < m.checkpoint {
		return
	}
	if b.ID > m.checkpoint {
		m.checkpoint, m.queued = b.ID, 0
	}
	c := &m.channels[channel]
	m.lastCame, m.lastQueued = channel, c.now-c.past.value(now.Add(-b.Age).Sub(m.start))
	m.queued += m.lastQueued
}

// Last is the channel whose barrier of this checkpoint came last, and what was queued
// ahead of it; -1 if none came.
func (m *Meter) Last(id weir.CheckpointID) (channel int, queued int64) {
	if id != m.checkpoint {
		return -1, 0
	}
	return m.lastCame, m.lastQueued
}

// Queued is the sum over the channels whose barriers of this checkpoint came.
func (m *Meter) Queued(id weir.CheckpointID) int64 {
	if id != m.checkpoint {
		return 0
	}
	return m.queued
}

// Rate is how many bytes per second of time that was not idle the task processed in the
// seconds before a time, or 0 if that is unknown.
func (m *Meter) Rate(before time.Time) float64 {
	to := before.Sub(m.start)
	from := max(to-rateWindow, 0)
	bytes := m.total.past.value(to) - m.total.past.value(from)
	busy := to - from - time.Duration(m.idle.past.value(to)-m.idle.past.value(from))
	if busy <= 0 || bytes <= 0 {
		return 0
	}
	return float64(bytes) / busy.Seconds()
}
