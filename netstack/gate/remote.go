package gate

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/credit"
	"github.com/weirflow/weir/netstack/wire"
)

// maxQueuedEvents bounds the events of a channel that wait to be polled: they need no
// credit, so nothing else does.
const maxQueuedEvents = 1024

// Upstream is a remote channel's way to its producer. It is called without a lock,
// from any goroutine, and must not wait.
type Upstream interface {
	// CreditDue says that an AddCredit message is due: RemoteChannel.Announce returns
	// how much, when it is sent.
	CreditDue()
	// Resume sends a Resume message.
	Resume()
	// Close sends a CloseChannel message; it is the last call.
	Close()
}

// RemoteChannel is a channel whose producer is in another process. The connection's
// reader calls Take, Deliver and DeliverEvent.
type RemoteChannel struct {
	gate    *InputGate
	channel *channel

	// The rest is guarded by gate.mu.
	up         Upstream // nil before Open
	grants     credit.Grants
	exclusive  []*buffer.Buffer // free
	floating   []*buffer.Buffer // free
	missing    int              // exclusive buffers that the pool owes
	waiting    bool             // in gate.mu.waiting
	next       uint32           // the sequence number that comes next
	queue      ring[received]
	priority   int  // priority events, at the front of the queue
	events     int  // events in the queue
	stopped    bool // the producer sent a blocking event and was not resumed
	closed     bool
	queuedData int64 // bytes
}

var _ buffer.Recycler = (*RemoteChannel)(nil)

// received is an item in a channel's queue.
type received struct {
	typ   wire.DataType
	data  buffer.View
	event []byte
	since time.Time // when the event came
}

// setUpLocked gives the channel its exclusive buffers, as far as the pool has them.
func (c *RemoteChannel) setUpLocked(exclusive int) {
	c.missing = exclusive
	c.gate.mu.missing += exclusive
	c.takeBuffersLocked()
	c.grants = credit.NewGrants(exclusive, len(c.exclusive))
}

// takeBuffersLocked requests the exclusive buffers that are missing.
func (c *RemoteChannel) takeBuffersLocked() (got int) {
	for ; c.missing > 0; got++ {
		b := c.gate.pool.TryRequest(0)
		if b == nil {
			break
		}
		b.SetRecycler(c)
		c.exclusive = append(c.exclusive, b)
		c.missing--
		c.gate.mu.missing--
	}
	return got
}

// takeExclusiveLocked is takeBuffersLocked for a channel that may be open. It says
// whether an announcement became due.
func (c *RemoteChannel) takeExclusiveLocked() (announce bool) {
	if c.closed {
		return false
	}
	for range c.takeBuffersLocked() {
		if _, due := c.grants.Recycled(); due {
			announce = true
		}
	}
	return announce
}

// Open connects the channel with its producer and returns the initial credit. It
// returns false if the channel was closed before.
func (c *RemoteChannel) Open(up Upstream) (initial int, ok bool) {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.closed {
		return 0, false
	}
	c.up = up
	c.grants.Announce() // what came since the gate was made is part of the initial credit
	return c.grants.Free(), true
}

// Take returns the buffer into which the payload of a data message is to be copied,
// all of it, before Deliver. Without a buffer and an error, the message is to be
// dropped: the channel is closed. An error is the producer's fault.
func (c *RemoteChannel) Take(h wire.Buffer) (*buffer.Buffer, error) {
	c.gate.mu.Lock()
	if c.closed {
		c.gate.mu.Unlock()
		return nil, nil
	}
	b, err := c.takeFreeLocked(h)
	announce := err == nil && c.backlogLocked(h)
	c.gate.mu.Unlock()
	if announce {
		c.announceDue()
	}
	return b, err
}

func (c *RemoteChannel) takeFreeLocked(h wire.Buffer) (*buffer.Buffer, error) {
	if err := c.checkLocked(h); err != nil {
		return nil, err
	}
	kind, err := c.grants.Take()
	if err != nil {
		return nil, err
	}
	if kind == credit.Floating {
		return pop(&c.floating), nil
	}
	return pop(&c.exclusive), nil
}

func pop(list *[]*buffer.Buffer) *buffer.Buffer {
	last := len(*list) - 1
	b := (*list)[last]
	(*list)[last] = nil
	*list = (*list)[:last]
	return b
}

// checkLocked says what is wrong with a message.
func (c *RemoteChannel) checkLocked(h wire.Buffer) error {
	switch {
	case h.Sequence != c.next:
		return fmt.Errorf("message %d instead of %d: %w", h.Sequence, c.next, ErrProtocol)
	case c.stopped && h.Type != wire.TypePriorityEvent:
		return fmt.Errorf("%s while stopped: %w", h.Type, ErrProtocol)
	case h.Type == wire.TypeNone || h.Payload == 0:
		return fmt.Errorf("%s of %d bytes: %w", h.Type, h.Payload, ErrProtocol)
	case h.Type.IsEvent() && h.Payload > wire.MaxEvent:
		return fmt.Errorf("event of %d bytes: %w", h.Payload, ErrProtocol)
	case h.Type.IsEvent() && c.events >= maxQueuedEvents:
		return fmt.Errorf("more than %d events queued: %w", maxQueuedEvents, ErrProtocol)
	}
	c.next++
	return nil
}

// backlogLocked takes the producer's backlog and requests floating buffers for it. It
// says whether an announcement became due.
func (c *RemoteChannel) backlogLocked(h wire.Buffer) (announce bool) {
	c.grants.Backlog(int(h.Backlog))
	for c.grants.Missing() > 0 && c.gate.mu.missing == 0 {
		b := c.gate.pool.TryRequest(0)
		if b == nil {
			break
		}
		c.floating = append(c.floating, b)
		if c.grants.Got() {
			announce = true
		}
	}
	if c.grants.Missing() > 0 && !c.waiting {
		c.waiting = true
		c.gate.mu.waiting.pushBack(c)
	}
	return announce
}

// Deliver queues the payload of a data message, in the buffer that Take returned.
func (c *RemoteChannel) Deliver(h wire.Buffer, b *buffer.Buffer) {
	b.SetBase(h.Base)
	b.Commit(h.Payload)
	view := b.Own()
	g := c.gate
	g.mu.Lock()
	if c.closed {
		g.mu.Unlock()
		view.Release()
		return
	}
	c.queue.pushBack(received{typ: wire.TypeData, data: view})
	c.queuedData += int64(h.Payload)
	wake := g.offerLocked(c.channel, false)
	g.mu.Unlock()
	if wake {
		g.wake()
	}
}

// DeliverEvent queues an event, whose bytes it keeps. An error is the producer's fault.
func (c *RemoteChannel) DeliverEvent(h wire.Buffer, event []byte) error {
	g := c.gate
	g.mu.Lock()
	if c.closed {
		g.mu.Unlock()
		return nil
	}
	if err := c.checkLocked(h); err != nil {
		g.mu.Unlock()
		return err
	}
	announce := c.backlogLocked(h)
	c.stopped = c.stopped || h.Type.Blocks()
	c.channel.complete = wire.IsEndOfPartition(event)
	at := c.queue.len()
	if h.Type == wire.TypePriorityEvent {
		at = c.priority
		c.priority++
	}
	c.queue.insert(at, received{typ: h.Type, event: event, since: time.Now()})
	c.events++
	wake := g.offerLocked(c.channel, h.Type == wire.TypePriorityEvent)
	g.mu.Unlock()
	if wake {
		g.wake()
	}
	if announce {
		c.announceDue()
	}
	return nil
}

// takeLocked takes the head of the queue.
func (c *RemoteChannel) takeLocked() Item {
	r := c.queue.popFront()
	item := Item{Type: r.typ, Data: r.data, Event: r.event}
	if r.typ == wire.TypeData {
		c.queuedData -= int64(r.data.Len())
		return item
	}
	item.Spent = time.Since(r.since)
	c.events--
	if c.priority > 0 {
		c.priority--
	}
	return item
}

// Announce returns the credit for one AddCredit message; 0 if there is none.
func (c *RemoteChannel) Announce() int {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.closed {
		return 0
	}
	return c.grants.Announce()
}

// announceDue tells the connection. No lock is held.
func (c *RemoteChannel) announceDue() {
	c.gate.mu.Lock()
	up := c.up
	if c.closed {
		up = nil
	}
	c.gate.mu.Unlock()
	if up != nil {
		up.CreditDue()
	}
}

// resume lets the producer go on. No lock is held.
func (c *RemoteChannel) resume() {
	g := c.gate
	g.mu.Lock()
	c.stopped = false
	up := c.up
	if c.queue.len() > 0 {
		g.offerLocked(c.channel, c.priority > 0)
	}
	g.mu.Unlock()
	if up != nil && !planted.Is(planted.ResumeForgotten) {
		up.Resume()
	}
}

// Recycle implements [buffer.Recycler] for the exclusive buffers.
func (c *RemoteChannel) Recycle(b *buffer.Buffer) {
	g := c.gate
	g.mu.Lock()
	if c.closed {
		g.mu.Unlock()
		b.SetRecycler(g.pool)
		g.pool.Recycle(b)
		return
	}
	b.Renew()
	c.exclusive = append(c.exclusive, b)
	giveUp, announce := c.grants.Recycled()
	var surplus *buffer.Buffer
	if giveUp {
		surplus = pop(&c.floating)
	}
	g.mu.Unlock()
	if surplus != nil {
		surplus.Release()
	}
	if announce {
		c.announceDue()
	}
}

func (c *RemoteChannel) queuedLocked() int64 { return c.queuedData }

// close gives the channel's buffers back and tells the producer. No lock is held.
func (c *RemoteChannel) close() {
	g := c.gate
	g.mu.Lock()
	if c.closed {
		g.mu.Unlock()
		return
	}
	c.closed = true
	free := append(c.exclusive, c.floating...)
	c.exclusive, c.floating = nil, nil
	g.mu.missing = max(0, g.mu.missing-c.missing)
	c.missing = 0
	dropped := c.queue
	c.queue, c.queuedData = ring[received]{}, 0
	up := c.up
	g.mu.Unlock()

	for _, b := range free {
		b.SetRecycler(g.pool)
		b.Release()
	}
	if planted.Is(planted.BuffersLost) {
		return
	}
	for i := range dropped.len() {
		dropped.at(i).data.Release()
	}
	if up != nil {
		up.Close()
	}
}
