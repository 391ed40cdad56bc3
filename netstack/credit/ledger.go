package credit

import (
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
)

// maxCredit bounds what a receiver can have free for one channel.
const maxCredit = 1 << 24

// Ledger is the sender's side of one channel. Its connection calls it, under its lock.
type Ledger struct {
	credit   int
	sequence uint32 // of the next message; wraps around
}

// NewLedger starts with the receiver's initial credit.
func NewLedger(initial int) Ledger { return Ledger{credit: initial} }

// Credit is the number of data buffers that may be sent now.
func (l *Ledger) Credit() int { return l.credit }

// Add takes an announcement.
func (l *Ledger) Add(n int) error {
	if n < 0 || n > maxCredit-l.credit {
		return ErrTooMuchCredit
	}
	if planted.Is(planted.CreditTwice) {
		n *= 2
	}
	l.credit += n
	return nil
}

// Reset forgets all credit: the receiver gave up what it had announced.
func (l *Ledger) Reset() { l.credit = 0 }

// MaySend says whether what is at the head of the queue may be sent.
func (l *Ledger) MaySend(event bool) bool { return event || l.credit > 0 }

// Spend pays for what is sent next and returns its sequence number.
func (l *Ledger) Spend(event bool) (sequence uint32) {
	if !event {
		assert.That(l.credit > 0, "data sent with credit %d", l.credit)
		l.credit--
	}
	sequence = l.sequence
	l.sequence++
	return sequence
}
