package debloat

import "time"

// Meter measures how fast a task consumes while it is not idle. It starts paused.
type Meter struct {
	running bool
	since   time.Time // when it last ran on
	active  time.Duration
	bytes   int64
	last    int64 // the throughput found last
}

// Consumed counts bytes, and ends a pause: the task is not idle.
func (m *Meter) Consumed(now time.Time, bytes int64) {
	m.Resume(now)
	m.bytes += bytes
}

// Pause says that the task has nothing to consume from now on.
func (m *Meter) Pause(now time.Time) {
	if m.running {
		m.active += now.Sub(m.since)
		m.running = false
	}
}

// Resume ends a pause.
func (m *Meter) Resume(now time.Time) {
	if !m.running {
		m.running, m.since = true, now
	}
}

// Throughput is the bytes per second of active time since it was asked last; if there
// was no active time, what it was then.
func (m *Meter) Throughput(now time.Time) int64 {
	if m.running {
		m.active += now.Sub(m.since)
		m.since = now
	}
	if m.active > 0 {
		m.last = int64(float64(m.bytes) / m.active.Seconds())
	}
	m.active, m.bytes = 0, 0
	return m.last
}
