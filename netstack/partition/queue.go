package partition

import (
	"time"

	"github.com/weirflow/weir/netstack/buffer"
)

// entry is a segment or an event in a queue.
type entry struct {
	buf   *buffer.Buffer // nil for an event; the queue's reference
	sent  int            // bytes of buf that the reader has
	event Event
	since time.Time // when the event was added

	announces bool // the event is a barrier that stands further behind
	passed    int  // segments that the event was moved past by the reader
}

// isData says whether the entry is a segment.
func (e *entry) isData() bool { return e.buf != nil }

// left is the number of committed bytes that the reader does not have.
func (e *entry) left() int { return e.buf.Committed() - e.sent }

// queue is a ring of entries.
type queue struct {
	ring  []entry // its length is a power of two, or 0
	first int
	n     int
}

// at returns the i-th entry from the front.
func (q *queue) at(i int) *entry { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

func (q *queue) pushBack(e entry) {
	q.room()
	q.n++
	*q.at(q.n - 1) = e
}

// insert puts an entry at position i; those from there on move back.
func (q *queue) insert(i int, e entry) {
	q.pushBack(entry{})
	for j := q.n - 1; j > i; j-- {
		*q.at(j) = *q.at(j - 1)
	}
	*q.at(i) = e
}

// remove takes the entry at position i out; those behind it move up.
func (q *queue) remove(i int) entry {
	e := *q.at(i)
	for ; i < q.n-1; i++ {
		*q.at(i) = *q.at(i + 1)
	}
	q.popBack()
	return e
}

func (q *queue) popFront() entry {
	e := *q.at(0)
	*q.at(0) = entry{}
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return e
}

func (q *queue) popBack() entry {
	e := *q.at(q.n - 1)
	*q.at(q.n - 1) = entry{}
	q.n--
	return e
}

func (q *queue) room() {
	if q.n < len(q.ring) {
		return
	}
	ring := make([]entry, max(8, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = *q.at(i)
	}
	q.ring, q.first = ring, 0
}
