package partition

import (
	"sync"
	"time"

	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/wire"
)

// Subpartition is the queue between a task and one consumer (behaviour §18). The
// task's goroutine adds; one reader at a time polls.
type Subpartition struct {
	released func() // called once, when the subpartition is released or failed

	mu struct {
		sync.Mutex
		queue    queue
		priority int    // priority events, at the front of the queue
		data     int    // segments in the queue
		open     bool   // the last entry is a segment that is still being filled
		flush    bool   // a flush was requested: the open segment may be read
		blocked  bool   // a blocking event was polled
		idle     bool   // the reader found nothing: it is to be notified
		notify   Notify // the reader's; nil before Attach
		ended    bool   // released or failed
		cause    error  // why it ended
	}
}

// Polled is what a reader got.
type Polled struct {
	Type    wire.DataType
	Data    buffer.View   // a segment's bytes; the reader releases it
	Event   []byte        // an event's bytes
	Spent   time.Duration // how long the event was queued
	Last    bool          // nothing follows it
	Backlog int           // segments that wait behind it
	Next    wire.DataType // what the next Poll finds; if TypeNone, the reader will be notified
}

// Notify tells a reader that there is something to poll, or that the subpartition has
// failed. urgent says that a priority event is at the head. It must not wait.
type Notify func(urgent bool)

// Outcome says how a Poll ended.
type Outcome uint8

// Outcomes.
const (
	Found       Outcome = iota
	Nothing             // the reader will be notified
	NeedsCredit         // data is at the head, and the reader has no credit
	Ended               // released or failed: see Err
)

func newSubpartition(released func()) *Subpartition { return &Subpartition{released: released} }

// Attach makes notify the reader's, and says whether there is something to poll; if
// not, notify is called once there is.
func (s *Subpartition) Attach(notify Notify) (available bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ended {
		return false, s.mu.cause
	}
	if s.mu.notify != nil {
		return false, ErrAttached
	}
	s.mu.notify = notify
	return s.lookLocked(), nil
}

// Poll takes what is at the head of the queue. Without credit it takes events only.
func (s *Subpartition) Poll(credit bool) (Polled, Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ended {
		return Polled{}, Ended
	}
	if !s.lookLocked() {
		return Polled{}, Nothing
	}
	if head := s.mu.queue.at(0); head.isData() {
		if !credit {
			return Polled{}, NeedsCredit
		}
		return s.pollDataLocked(head), Found
	}
	return s.pollEventLocked(), Found
}

// lookLocked says whether something can be polled, and if not, that the reader is to
// be notified.
func (s *Subpartition) lookLocked() bool {
	s.mu.idle = !s.availableLocked()
	return !s.mu.idle
}

func (s *Subpartition) availableLocked() bool {
	if s.mu.blocked || s.mu.queue.n == 0 {
		return false
	}
	return s.mu.queue.n > 1 || !s.mu.open || s.mu.flush
}

func (s *Subpartition) pollDataLocked(head *entry) Polled {
	p := Polled{Type: wire.TypeData}
	if s.mu.queue.n == 1 && s.mu.open {
		p.Data = head.buf.View(head.sent, head.buf.Committed())
		head.sent += p.Data.Len()
	} else {
		e := s.mu.queue.popFront()
		s.mu.data--
		p.Data = e.buf.OwnFrom(e.sent)
	}
	s.afterPollLocked(&p)
	return p
}

func (s *Subpartition) pollEventLocked() Polled {
	e := s.mu.queue.popFront()
	if s.mu.priority > 0 {
		s.mu.priority--
	}
	s.mu.blocked = e.event.Type.Blocks()
	p := Polled{Type: e.event.Type, Event: e.event.Bytes, Last: e.event.Last, Spent: time.Since(e.since)}
	s.afterPollLocked(&p)
	return p
}

// afterPollLocked ends a flush whose bytes the reader has, and says what follows. If
// nothing does, the reader need not poll in vain to be notified.
func (s *Subpartition) afterPollLocked(p *Polled) {
	if q := &s.mu.queue; q.n == 0 || (q.n == 1 && s.mu.open && q.at(0).left() == 0) {
		s.mu.flush = false
	}
	p.Backlog = s.backlogLocked()
	if s.lookLocked() {
		p.Next = s.headTypeLocked()
	}
}

func (s *Subpartition) headTypeLocked() wire.DataType {
	if head := s.mu.queue.at(0); !head.isData() {
		return head.event.Type
	}
	return wire.TypeData
}

// backlogLocked counts the segments that wait for the reader: the open one only if a
// flush was requested, none while the reader is blocked.
func (s *Subpartition) backlogLocked() int {
	switch {
	case s.mu.blocked:
		return 0
	case s.mu.open && !s.mu.flush:
		return s.mu.data - 1
	}
	return s.mu.data
}

// attached says whether the subpartition has a reader.
func (s *Subpartition) attached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.notify != nil
}

// Backlog is the number of segments that wait for the reader.
func (s *Subpartition) Backlog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backlogLocked()
}

// Err says why Poll ended, nil if it did not.
func (s *Subpartition) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.cause
}

// Resume ends the stop after a blocking event. It says whether there is something to
// poll; if not, the reader is notified once there is.
func (s *Subpartition) Resume() (available bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ended {
		return false, nil
	}
	if !s.mu.blocked {
		return false, ErrNotBlocked
	}
	s.mu.blocked = false
	return s.lookLocked(), nil
}

// QueuedBytes is the number of published bytes that the reader has not taken.
func (s *Subpartition) QueuedBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int64
	for i := range s.mu.queue.n {
		if e := s.mu.queue.at(i); e.isData() {
			n += int64(e.left())
		}
	}
	return n
}

// open adds a segment that is going to be filled, with a reference; the one before
// it is finished.
func (s *Subpartition) open(b *buffer.Buffer) {
	s.mu.Lock()
	if s.mu.ended {
		s.mu.Unlock()
		b.Release()
		return
	}
	spent := s.finishLocked()
	s.mu.queue.pushBack(entry{buf: b})
	s.mu.data++
	s.mu.open = true
	s.unlockAndNotify(spent)
}

// finish says that the open segment is complete.
func (s *Subpartition) finish() {
	s.mu.Lock()
	s.unlockAndNotify(s.finishLocked())
}

// requestFlush lets the reader have what is committed of the open segment. The
// reader may have taken it already, with what an earlier flush left for it.
func (s *Subpartition) requestFlush() {
	s.mu.Lock()
	if s.mu.open && s.mu.queue.at(s.mu.queue.n-1).left() > 0 {
		s.mu.flush = true
	}
	s.unlockAndNotify(nil)
}

// add adds an event, behind everything or, if it has priority, behind the other
// priority events only. The open segment is finished.
func (s *Subpartition) add(e Event) {
	s.mu.Lock()
	if s.mu.ended {
		s.mu.Unlock()
		return
	}
	spent := s.finishLocked()
	x := entry{event: e, since: time.Now()}
	if e.Type == wire.TypePriorityEvent || e.Type.Blocks() && planted.Is(planted.BarrierOvertakes) {
		s.mu.queue.insert(s.mu.priority, x)
		s.mu.priority++
		// A reader that waits for credit is not idle, but can take the event; one that
		// is about to poll learns that the event is urgent.
		s.mu.idle = s.mu.idle || s.mu.priority == 1
	} else {
		s.mu.queue.pushBack(x)
	}
	s.unlockAndNotify(spent)
}

// finishLocked closes the open segment. If the reader has all of it, it leaves the
// queue, and its buffer is returned, to be released without the lock.
func (s *Subpartition) finishLocked() (spent *buffer.Buffer) {
	if !s.mu.open {
		return nil
	}
	s.mu.open = false
	if last := s.mu.queue.at(s.mu.queue.n - 1); last.left() == 0 {
		spent = s.mu.queue.popBack().buf
		s.mu.data--
	}
	return spent
}

// unlockAndNotify ends a change: the reader is notified if it was idle and need not be.
func (s *Subpartition) unlockAndNotify(spent *buffer.Buffer) {
	var notify Notify
	if s.mu.idle && s.mu.notify != nil && s.availableLocked() {
		s.mu.idle = false
		notify = s.mu.notify
	}
	urgent := s.mu.priority > 0
	s.mu.Unlock()
	if spent != nil {
		spent.Release()
	}
	if notify != nil {
		notify(urgent)
	}
}

// Release is the consumer's end: the queue is dropped, and so is what is added later.
// Idempotent.
func (s *Subpartition) Release() { s.end(ErrReleased, false) }

// fail is the producer's end: the reader is notified and finds the cause.
func (s *Subpartition) fail(cause error) { s.end(cause, true) }

func (s *Subpartition) end(cause error, tell bool) {
	assert.That(cause != nil, "end without a cause")
	s.mu.Lock()
	if s.mu.ended {
		s.mu.Unlock()
		return
	}
	s.mu.ended, s.mu.cause = true, cause
	dropped := s.mu.queue
	s.mu.queue, s.mu.data, s.mu.priority, s.mu.open = queue{}, 0, 0, false
	notify := s.mu.notify
	s.mu.Unlock()

	for i := range dropped.n {
		if e := dropped.at(i); e.isData() {
			e.buf.Release()
		}
	}
	if tell && notify != nil {
		notify(false)
	}
	if s.released != nil {
		s.released()
	}
}
