package partition

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/wire"
)

// overtake adds a priority event, and returns what of the segments it passes the
// reader does not have. What the reader takes meanwhile it takes after the event.
func (s *Subpartition) overtake(e Event) []buffer.View {
	s.mu.Lock()
	if s.mu.ended {
		s.mu.Unlock()
		return nil
	}
	spent := s.finishLocked()
	s.mu.queue.insert(s.mu.priority, entry{event: e, since: time.Now()})
	s.mu.priority++
	s.urgentLocked()
	views := s.viewsLocked(s.mu.queue.n)
	s.unlockAndNotify(spent)
	return views
}

// urgentLocked sees to it that the reader is notified of a new priority event: one that
// waits for credit is not idle, but can take the event; one that is about to poll
// learns that it is urgent.
func (s *Subpartition) urgentLocked() { s.mu.idle = s.mu.idle || s.mu.priority == 1 }

// viewsLocked returns what the reader does not have of the segments among the first n
// entries.
func (s *Subpartition) viewsLocked(n int) (views []buffer.View) {
	for i := s.mu.priority; i < n; i++ {
		if e := s.mu.queue.at(i); e.isData() {
			views = append(views, e.buf.View(e.sent, e.buf.Committed()))
		}
	}
	if n := len(views); n > 0 && planted.Is(planted.OvertakenOneLess) {
		views[n-1].Release()
		views = views[:n-1]
	}
	return views
}

// addTimeoutable adds a barrier behind everything, and the promise that it leaves open.
// It returns false if nobody reads.
func (s *Subpartition) addTimeoutable(e Event, d *promise) bool {
	s.mu.Lock()
	if s.mu.ended {
		s.mu.Unlock()
		return false
	}
	assert.That(s.mu.promise == nil, "barrier %d while %d is open", e.Barrier, d.id)
	spent := s.finishLocked()
	s.mu.queue.pushBack(entry{event: e, since: time.Now()})
	s.mu.promise = d
	s.announceLocked()
	s.unlockAndNotify(spent)
	return true
}

// announceLocked lets a reader in this process have the barrier's announcement, even if
// the barrier is next: the reader may be taking priority events only.
func (s *Subpartition) announceLocked() {
	if !s.mu.local || s.mu.promise == nil {
		return
	}
	e := *s.mu.queue.at(s.findLocked(s.mu.promise.id))
	e.event.Type, e.announces = wire.TypePriorityEvent, true
	s.mu.queue.insert(s.mu.priority, e)
	s.mu.priority++
	s.urgentLocked()
}

// findLocked returns the place of a timeoutable barrier that was not moved, or -1.
func (s *Subpartition) findLocked(id weir.CheckpointID) int {
	for i := s.mu.priority; i < s.mu.queue.n; i++ {
		if e := s.mu.queue.at(i); e.event.Type == wire.TypeAnnouncedEvent && e.event.Barrier == id {
			return i
		}
	}
	return -1
}

// timeout turns the promise's barrier into a priority event, and returns what of the
// segments that it passes the reader does not have; false if the promise is not open.
func (s *Subpartition) timeout(d *promise) (views []buffer.View, open bool) {
	s.mu.Lock()
	if s.mu.promise != d {
		s.mu.Unlock()
		return nil, false
	}
	s.mu.promise = nil
	i := s.findLocked(d.id)
	views = s.viewsLocked(i)
	e := s.mu.queue.remove(i)
	e.event = unaligned(e.event)
	s.mu.queue.insert(s.mu.priority, e)
	s.mu.priority++
	s.urgentLocked()
	s.unlockAndNotify(nil)
	return views, true
}

// unaligned is a barrier as it overtakes.
func unaligned(e Event) Event {
	x, err := wire.DecodeEvent(e.Bytes)
	b, ok := x.(wire.Barrier)
	assert.That(err == nil && ok, "%x is no barrier: %v", e.Bytes, err)
	b.Options.Alignment = weir.Unaligned
	return NewEvent(wire.TypePriorityEvent, b)
}

// abort ends the promise; the barrier stays.
func (s *Subpartition) abort(d *promise) {
	s.mu.Lock()
	open := s.mu.promise == d
	if open {
		s.mu.promise = nil
	}
	s.mu.Unlock()
	if open {
		d.keep()
	}
}

// ToHead moves a timeoutable barrier that was announced to the head of the queue, for
// the reader; it still blocks. What it passes is the reader's to capture: Overtaken,
// when the barrier was polled. It returns false if the barrier is not there any more.
func (s *Subpartition) ToHead(id weir.CheckpointID) bool {
	s.mu.Lock()
	i := s.findLocked(id)
	if i < 0 {
		s.mu.Unlock()
		return false
	}
	var kept *promise
	if s.mu.promise != nil && s.mu.promise.id == id {
		kept, s.mu.promise = s.mu.promise, nil
	}
	e := s.mu.queue.remove(i)
	for j := s.mu.priority; j < i; j++ {
		if s.mu.queue.at(j).isData() {
			e.passed++
		}
	}
	s.mu.queue.insert(s.mu.priority, e)
	s.mu.priority++
	s.urgentLocked()
	s.unlockAndNotify(nil)
	kept.keep()
	return true
}

// Overtaken returns the segments that the barrier polled last was moved past by ToHead,
// as far as the reader does not have them; it releases the views. They stay queued.
func (s *Subpartition) Overtaken() (views []buffer.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; s.mu.passed > 0 && i < s.mu.queue.n; i++ {
		if e := s.mu.queue.at(i); e.isData() {
			views = append(views, e.buf.View(e.sent, e.buf.Committed()))
			s.mu.passed--
		}
	}
	return views
}

// Overtaking is the newest checkpoint whose barrier stands at the head of the queue,
// past what it overtook; weir.NoCheckpoint if there is none.
func (s *Subpartition) Overtaking() (id weir.CheckpointID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.mu.priority {
		if e := s.mu.queue.at(i); !e.announces {
			id = max(id, e.event.Barrier)
		}
	}
	return id
}
