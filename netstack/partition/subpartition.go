package partition

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/wire"
)

// Subpartition is the queue between a task and one consumer (behaviour §18). The
// task's goroutine adds; one reader at a time polls.
type Subpartition struct {
	released func()       // called once, when the subpartition is released or failed
	limit    int          // segments it should have at most; 0: unknown
	size     atomic.Int32 // bytes that new segments are to have; 0: all

	mu struct {
		sync.Mutex
		queue    queue
		priority int      // events at the front of the queue that go before all others
		data     int      // segments in the queue
		open     bool     // the last entry is a segment that is still being filled
		flush    bool     // a flush was requested: the open segment may be read
		blocked  bool     // a blocking event was polled
		idle     bool     // the reader found nothing: it is to be notified
		notify   Notify   // the reader's; nil before Attach
		ended    bool     // released or failed
		cause    error    // why it ended
		local    bool     // the reader is to have announcements
		promise  *promise // of a timeoutable barrier in the queue
		passed   int      // segments at the front of the queue that the event polled last was moved past
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
	// Announcement says that Event is a barrier that stands further behind in the queue.
	// Only readers that came with AttachLocal get it.
	Announcement bool
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

func newSubpartition(released func(), limit int) *Subpartition {
	return &Subpartition{released: released, limit: limit}
}

// Attach makes notify the reader's, and says what there is to poll; if nothing,
// notify is called once there is.
func (s *Subpartition) Attach(notify Notify) (next wire.DataType, err error) {
	return s.attach(notify, false)
}

// AttachLocal is Attach for a reader in this process: it has no other end of a
// connection that would announce barriers to it, so the subpartition does.
func (s *Subpartition) AttachLocal(notify Notify) (next wire.DataType, err error) {
	return s.attach(notify, true)
}

func (s *Subpartition) attach(notify Notify, local bool) (next wire.DataType, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ended {
		return wire.TypeNone, s.mu.cause
	}
	if s.mu.notify != nil {
		return wire.TypeNone, ErrAttached
	}
	s.mu.notify, s.mu.local = notify, local
	s.announceLocked()
	return s.nextLocked(), nil
}

// Poll takes what is at the head of the queue. Without credit it takes events only.
func (s *Subpartition) Poll(credit bool) (Polled, Outcome) {
	s.mu.Lock()
	if s.mu.ended {
		s.mu.Unlock()
		return Polled{}, Ended
	}
	if !s.lookLocked() {
		s.mu.Unlock()
		return Polled{}, Nothing
	}
	if head := s.mu.queue.at(0); head.isData() {
		if !credit {
			s.mu.Unlock()
			return Polled{}, NeedsCredit
		}
		p := s.pollDataLocked(head)
		s.mu.Unlock()
		return p, Found
	}
	p, kept := s.pollEventLocked()
	s.mu.Unlock()
	kept.keep()
	return p, Found
}

// PollPriority is Poll for priority events only. With Nothing it says in Next whether
// Poll would find something; if not, the reader will be notified.
func (s *Subpartition) PollPriority() (Polled, Outcome) {
	s.mu.Lock()
	if s.mu.ended {
		s.mu.Unlock()
		return Polled{}, Ended
	}
	if next := s.nextLocked(); next != wire.TypePriorityEvent {
		s.mu.Unlock()
		return Polled{Next: next}, Nothing
	}
	p, kept := s.pollEventLocked()
	s.mu.Unlock()
	kept.keep()
	return p, Found
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
	s.mu.passed = 0
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

// pollEventLocked also returns the promise that ends with the event, to be kept without
// the lock.
func (s *Subpartition) pollEventLocked() (p Polled, kept *promise) {
	e := s.mu.queue.popFront()
	if s.mu.priority > 0 {
		s.mu.priority--
	}
	if e.event.Type == wire.TypeAnnouncedEvent && s.mu.promise != nil && s.mu.promise.id == e.event.Barrier {
		kept, s.mu.promise = s.mu.promise, nil
	}
	s.mu.blocked = e.event.Type.Blocks()
	s.mu.passed = e.passed
	p = Polled{Type: e.event.Type, Event: e.event.Bytes, Last: e.event.Last, Spent: time.Since(e.since), Announcement: e.announces}
	s.afterPollLocked(&p)
	return p, kept
}

// afterPollLocked ends a flush whose bytes the reader has, and says what follows. If
// nothing does, the reader need not poll in vain to be notified.
func (s *Subpartition) afterPollLocked(p *Polled) {
	if q := &s.mu.queue; q.n == 0 || (q.n == 1 && s.mu.open && q.at(0).left() == 0) {
		s.mu.flush = false
	}
	p.Backlog = s.backlogLocked()
	p.Next = s.nextLocked()
}

// nextLocked says what can be polled; if nothing, that the reader is to be notified.
func (s *Subpartition) nextLocked() wire.DataType {
	if !s.lookLocked() {
		return wire.TypeNone
	}
	switch head := s.mu.queue.at(0); {
	case s.mu.priority > 0:
		return wire.TypePriorityEvent
	case head.isData():
		return wire.TypeData
	default:
		return head.event.Type
	}
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

// Resume ends the stop after a blocking event. It says what there is to poll; if
// nothing, the reader is notified once there is.
func (s *Subpartition) Resume() (next wire.DataType, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ended {
		return wire.TypeNone, nil
	}
	if !s.mu.blocked {
		return wire.TypeNone, ErrNotBlocked
	}
	s.mu.blocked = false
	return s.nextLocked(), nil
}

// SetBufferSize bounds the bytes of segments that the task begins from now on, as their
// reader asked (behaviour §22).
func (s *Subpartition) SetBufferSize(n int) { s.size.Store(int32(min(max(n, 1), buffer.Capacity))) }

func (s *Subpartition) bufferSize() int {
	if n := int(s.size.Load()); n > 0 {
		return n
	}
	return buffer.Capacity
}

// Segments is the number of segments that are queued, and how many should be at most
// (0: unknown).
func (s *Subpartition) Segments() (queued, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.data, s.limit
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
		s.urgentLocked()
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
	kept := s.mu.promise
	s.mu.promise = nil
	dropped := s.mu.queue
	s.mu.queue, s.mu.data, s.mu.priority, s.mu.open = queue{}, 0, 0, false
	notify := s.mu.notify
	s.mu.Unlock()

	for i := range dropped.n {
		if e := dropped.at(i); e.isData() {
			e.buf.Release()
		}
	}
	kept.keep()
	if tell && notify != nil {
		notify(false)
	}
	if s.released != nil {
		s.released()
	}
}
