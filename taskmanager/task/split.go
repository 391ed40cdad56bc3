package task

import (
	"sync/atomic"
	"time"
)

// activity is what a task does with its time.
type activity int32

const (
	busy activity = iota
	idle          // waits for input
	// Waits for room in an output: between two records, where it can still read letters, or
	// within one.
	softBackPressured
	hardBackPressured
	activities
)

// split adds up how long a task did what. The task changes it; anyone reads it.
type split struct {
	start time.Time
	spent [activities]atomic.Int64 // nanoseconds
	doing atomic.Int32
	since atomic.Int64 // nanoseconds after start
}

func (s *split) begin(now time.Time) { s.start = now }

// enter notes that the task does something else from now on.
func (s *split) enter(a activity, now time.Time) {
	at := int64(now.Sub(s.start))
	s.spent[s.doing.Load()].Add(at - s.since.Load())
	s.since.Store(at)
	s.doing.Store(int32(a))
}

// read returns the times so far. A change that happens meanwhile may make them wrong
// by what it took to notice.
func (s *split) read(now time.Time) (times [activities]time.Duration) {
	for a := range times {
		times[a] = time.Duration(s.spent[a].Load())
	}
	times[s.doing.Load()] += max(0, now.Sub(s.start)-time.Duration(s.since.Load()))
	return times
}
