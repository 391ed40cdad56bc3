package resource

import (
	"bytes"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// HeartbeatMonitor finds TaskManagers that are silent. Only the dispatcher's loop
// may call it.
type HeartbeatMonitor struct {
	timeout time.Duration
	last    map[weir.TaskManagerID]time.Time
}

// NewHeartbeatMonitor returns a monitor that gives a TaskManager up after timeout.
func NewHeartbeatMonitor(timeout time.Duration) *HeartbeatMonitor {
	return &HeartbeatMonitor{timeout: timeout, last: make(map[weir.TaskManagerID]time.Time)}
}

// Heard notes that a TaskManager lives, and begins to watch it.
func (m *HeartbeatMonitor) Heard(now time.Time, id weir.TaskManagerID) { m.last[id] = now }

// Forget ends the watch.
func (m *HeartbeatMonitor) Forget(id weir.TaskManagerID) { delete(m.last, id) }

// Last is when a TaskManager was heard of last.
func (m *HeartbeatMonitor) Last(id weir.TaskManagerID) time.Time { return m.last[id] }

// Silent returns who has been silent for the timeout, sorted.
func (m *HeartbeatMonitor) Silent(now time.Time) []weir.TaskManagerID {
	var silent []weir.TaskManagerID
	for id, last := range m.last {
		if now.Sub(last) >= m.timeout {
			silent = append(silent, id)
		}
	}
	slices.SortFunc(silent, func(a, b weir.TaskManagerID) int { return bytes.Compare(a[:], b[:]) })
	return silent
}
