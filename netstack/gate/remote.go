package gate

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
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
	// BufferSize sends a BufferSize message.
	BufferSize(size int)
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
	deferred   bool             // an announcement is due, and waits for more to gather
	next       uint32           // the sequence number that comes next
	queue      ring[received]
	priority   int  // priority events, at the front of the queue
	events     int  // events in the queue
	stopped    bool // the producer sent a blocking event and was not resumed
	closed     bool
	queuedData int64 // bytes
	segments   int   // in the queue
	backlog    int   // the producer's, as it said last
	without    bool  // there are no exclusive buffers
}

var _ buffer.Recycler = (*RemoteChannel)(nil)

// received is an item in a channel's queue.
type received struct {
	typ       wire.DataType
	sequence  uint32
	data      buffer.View
	event     []byte
	since     time.Time         // when the event came
	barrier   weir.CheckpointID // whose barrier the event is, if it goes first or may
	announces bool              // the event is a barrier that is queued further behind
}

// setUpLocked gives the channel its exclusive buffers, as far as the pool has them.
func (c *RemoteChannel) setUpLocked(exclusive int) {
	c.missing, c.without = exclusive, exclusive == 0
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
	return c.dueLocked(announce)
}

// dueLocked says whether to send an announcement now, if one became due or was
// deferred before.
func (c *RemoteChannel) dueLocked(announce bool) bool {
	c.deferred = c.deferred || announce
	if !c.deferred || c.grants.MayWait() {
		return false
	}
	c.deferred = false
	return true
}

// Open connects the channel with its producer and returns the initial credit. It
// returns false if the channel was closed before.
func (c *RemoteChannel) Open(up Upstream) (initial int, ok bool) {
	c.gate.mu.Lock()
	if c.closed {
		c.gate.mu.Unlock()
		return 0, false
	}
	c.up = up
	c.grants.Announce() // what came since the gate was made is part of the initial credit
	c.deferred = false
	initial, size := c.grants.Free(), c.channel.size
	c.gate.mu.Unlock()
	if size > 0 {
		up.BufferSize(size)
	}
	return initial, true
}

// WithoutExclusive says that the producer is to announce its backlog when it has no
// credit, and to forget its credit when it is resumed (behaviour §23, E = 0).
func (c *RemoteChannel) WithoutExclusive() bool { return c.without }

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
	announce := err == nil && c.dueLocked(c.backlogLocked(int(h.Backlog)))
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
func (c *RemoteChannel) backlogLocked(n int) (announce bool) {
	c.backlog = n
	c.grants.Backlog(n)
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
	c.queue.pushBack(received{typ: wire.TypeData, sequence: h.Sequence, data: view})
	c.queuedData += int64(h.Payload)
	c.segments++
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
	announce := c.dueLocked(c.backlogLocked(int(h.Backlog)))
	c.stopped = c.stopped || h.Type.Blocks()
	c.channel.complete = wire.IsEndOfPartition(event)
	wake, urgent := c.queueEventLocked(h, event)
	var surplus []*buffer.Buffer
	if h.Type.Blocks() && c.without {
		surplus, c.floating = c.floating, nil
		c.grants.GiveUp()
		c.deferred = false
	}
	g.mu.Unlock()
	g.tell(wake, urgent)
	for _, b := range surplus {
		b.Release()
	}
	if announce {
		c.announceDue()
	}
	return nil
}

// queueEventLocked puts an event into the queue, and an announcement of a timeoutable
// barrier before the data.
func (c *RemoteChannel) queueEventLocked(h wire.Buffer, event []byte) (wake, urgent bool) {
	r := received{typ: h.Type, sequence: h.Sequence, event: event, since: time.Now()}
	if h.Type == wire.TypePriorityEvent {
		r.barrier = barrierOf(event)
		return c.goFirstLocked(r), true
	}
	if h.Type == wire.TypeAnnouncedEvent {
		r.barrier = barrierOf(event)
	}
	c.queue.pushBack(r)
	c.events++
	wake = c.gate.offerLocked(c.channel, false)
	if r.barrier == weir.NoCheckpoint {
		return wake, false
	}
	r.typ, r.announces = wire.TypePriorityEvent, true
	return c.goFirstLocked(r) || wake, true
}

// goFirstLocked queues a priority item behind the others of the kind.
func (c *RemoteChannel) goFirstLocked(r received) (wake bool) {
	c.queue.insert(c.priority, r)
	c.priority++
	c.events++
	return c.gate.offerLocked(c.channel, true)
}

// Backlog takes the producer's backlog, which it announced because it has no credit.
func (c *RemoteChannel) Backlog(n int) {
	c.gate.mu.Lock()
	announce := !c.closed && !c.stopped && c.dueLocked(c.backlogLocked(n))
	c.gate.mu.Unlock()
	if announce {
		c.announceDue()
	}
}

// takeLocked takes the head of the queue.
func (c *RemoteChannel) takeLocked() Item {
	r := c.queue.popFront()
	item := Item{Type: r.typ, Data: r.data, Event: r.event, Sequence: r.sequence, Announcement: r.announces}
	if r.typ == wire.TypeData {
		c.queuedData -= int64(r.data.Len())
		c.segments--
		return item
	}
	item.Spent = time.Since(r.since)
	c.events--
	if c.priority > 0 {
		c.priority--
	}
	return item
}

// nextLocked says what is at the head of the queue.
func (c *RemoteChannel) nextLocked() wire.DataType {
	switch {
	case c.priority > 0:
		return wire.TypePriorityEvent
	case c.queue.len() == 0:
		return wire.TypeNone
	}
	return c.queue.at(0).typ
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
	wake, urgent := false, c.priority > 0
	if c.queue.len() > 0 {
		wake = g.offerLocked(c.channel, urgent)
	}
	g.mu.Unlock()
	g.tell(wake, urgent)
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
	announce = c.dueLocked(announce)
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
	c.queue, c.queuedData, c.segments, c.priority = ring[received]{}, 0, 0, 0
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
