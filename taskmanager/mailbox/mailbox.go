package mailbox

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Errors of Post.
var (
	// ErrFull: the letter's class has no room.
	ErrFull = errors.New("mailbox full")
	// ErrClosed: the task reads no more.
	ErrClosed = errors.New("mailbox closed")
)

// Priority orders letters.
type Priority uint8

// Priorities, most urgent first (DECISIONS 24).
const (
	Notification Priority = iota // of completed and aborted checkpoints
	Urgent                       // unaligned triggers
	Internal                     // the task's own: ends of asynchronous parts, timers that are due
	Normal                       // everything else
	priorities
)

// Mailbox is a bounded queue of letters. Post and Close may be called from any
// goroutine, the rest from the task's.
type Mailbox[L any] struct {
	capacity int
	flag     *atomic.Bool  // set by each post; the task clears it
	wake     chan struct{} // holds a token when there may be mail

	mu struct {
		sync.Mutex
		classes [priorities]queue[L]
		closed  bool
	}
}

// queue is a ring that grows up to the capacity and is then reused.
type queue[L any] struct {
	ring []L
	head int
	n    int
}

// New returns a mailbox with room for capacity letters of each priority. Each post
// sets the flag.
func New[L any](capacity int, flag *atomic.Bool) *Mailbox[L] {
	return &Mailbox[L]{capacity: capacity, flag: flag, wake: make(chan struct{}, 1)}
}

// Post puts a letter in. It never waits.
func (m *Mailbox[L]) Post(p Priority, letter L) error {
	if err := m.put(p, letter); err != nil {
		return err
	}
	m.flag.Store(true)
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return nil
}

func (m *Mailbox[L]) put(p Priority, letter L) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return ErrClosed
	}
	q := &m.mu.classes[p]
	if q.n == m.capacity {
		return ErrFull
	}
	q.push(letter)
	return nil
}

// Take returns the next letter, if there is one.
func (m *Mailbox[L]) Take() (letter L, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.mu.classes {
		if q := &m.mu.classes[p]; q.n > 0 {
			return q.pop(), true
		}
	}
	return letter, false
}

// Wake is what to sleep on: it delivers a token after a post. A token may be left
// over from letters that were taken already.
func (m *Mailbox[L]) Wake() <-chan struct{} { return m.wake }

// Close refuses letters from now on and returns those that nobody took, in order.
func (m *Mailbox[L]) Close() []L {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.closed = true
	var left []L
	for p := range m.mu.classes {
		for q := &m.mu.classes[p]; q.n > 0; {
			left = append(left, q.pop())
		}
	}
	return left
}

func (q *queue[L]) push(letter L) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)%len(q.ring)] = letter
	q.n++
}

func (q *queue[L]) grow() {
	ring := make([]L, max(8, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.ring[(q.head+i)%len(q.ring)]
	}
	q.ring, q.head = ring, 0
}

func (q *queue[L]) pop() L {
	var zero L
	letter := q.ring[q.head]
	q.ring[q.head] = zero // let go of what it holds
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return letter
}
