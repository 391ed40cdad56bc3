package gate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// Item is what Poll found: elements or an event.
type Item struct {
	Channel int
	Type    wire.DataType
	// Data are bytes of elements, if Type is TypeData; the caller releases it.
	Data buffer.View
	// Event are an event's bytes otherwise. wire.DecodeEvent reads them.
	Event []byte
	// Spent is how long the event has been on this side: to be added to a barrier's
	// age (wire.AddAge).
	Spent time.Duration
	// Sequence numbers the items of a remote channel; it wraps around.
	Sequence uint32
	// Announcement says that Event is a timeoutable barrier that is queued further
	// behind in the channel, and comes again by itself or after ToHead.
	Announcement bool
	// More says that another Poll finds something.
	More bool
}

// Options of an InputGate.
type Options struct {
	Channels  []Channel
	Exclusive int // buffers per remote channel
	Floating  int // buffers for all remote channels together, at least 1
	Network   *buffer.NetworkPool
	// Wake is called without a lock, from any goroutine, when there is something
	// after Poll had found nothing. It must not wait.
	Wake func()
	// Urgent is called likewise whenever a priority item came, whatever Poll had found;
	// nil: Wake is called instead.
	Urgent func()
}

// Channel says who produces a channel, and whether in another process.
type Channel struct {
	Producer weir.AttemptID
	Remote   bool
}

// InputGate is one input of a task. Poll, PollPriority, ToHead, CaptureQueued, Resume,
// End and Close are for the task's goroutine.
type InputGate struct {
	channels []*channel
	pool     *buffer.LocalPool // nil if no channel is remote
	wake     func()
	urgent   func()

	mu struct {
		sync.Mutex
		urgent  ring[*channel]       // channels that may have a priority item, each once
		ready   ring[*channel]       // channels that may have something, each once
		waiting ring[*RemoteChannel] // remote channels that want floating buffers, each once
		missing int                  // exclusive buffers that channels do not have yet
		wanted  bool                 // Poll found nothing: wake is due
		err     error                // a channel failed
		closed  bool
	}
}

// channel is one channel of either kind. Fields that are not atomic are guarded by
// InputGate.mu.
type channel struct {
	index    int
	producer weir.AttemptID
	consumed atomic.Int64
	local    *partition.Subpartition // nil if remote, or not attached yet
	remote   *RemoteChannel          // nil if local
	queued   bool                    // in the ready queue
	urgent   bool                    // in the urgent queue
	size     int                     // that was announced to the producer; 0: none
	blocked  bool                    // a blocking event was polled
	complete bool                    // the last event has arrived: a failure does no harm
	ended    bool                    // End was called
}

// New makes a gate. It sets the buffers of its remote channels aside, or refuses with
// buffer.ErrInsufficientBuffers.
func New(o Options) (*InputGate, error) {
	g := &InputGate{wake: o.Wake, urgent: o.Urgent}
	if g.urgent == nil {
		g.urgent = o.Wake
	}
	remotes := 0
	for i, c := range o.Channels {
		ch := &channel{index: i, producer: c.Producer}
		if c.Remote {
			remotes++
			ch.remote = &RemoteChannel{gate: g, channel: ch}
		}
		g.channels = append(g.channels, ch)
	}
	if remotes == 0 {
		return g, nil
	}
	assert.That(o.Exclusive >= 0 && o.Floating >= 1, "%d exclusive, %d floating buffers", o.Exclusive, o.Floating)
	own := o.Exclusive * remotes
	pool, err := o.Network.NewLocalPool(buffer.LocalOptions{Min: own + 1, Max: own + o.Floating, Listener: g.buffersChanged})
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pool = pool
	for _, c := range g.channels {
		if c.remote != nil {
			c.remote.setUpLocked(o.Exclusive)
		}
	}
	return g, nil
}

// Channels is the number of channels.
func (g *InputGate) Channels() int { return len(g.channels) }

// Producer is who produces a channel.
func (g *InputGate) Producer(channel int) weir.AttemptID { return g.channels[channel].producer }

// Remote returns a remote channel, for its connection; nil if the channel is local.
func (g *InputGate) Remote(channel int) *RemoteChannel { return g.channels[channel].remote }

// AttachLocal connects a local channel with its producer's queue.
func (g *InputGate) AttachLocal(channel int, s *partition.Subpartition) {
	c := g.channels[channel]
	g.mu.Lock()
	gone := g.mu.closed || c.ended
	if !gone {
		c.local = s // before Attach, which may notify at once
	}
	size := c.size
	g.mu.Unlock()
	if gone {
		s.Release()
		return
	}
	if size > 0 {
		s.SetBufferSize(size)
	}
	next, err := s.AttachLocal(func(urgent bool) { g.offer(c, urgent) })
	if err != nil {
		g.Fail(channel, err)
		return
	}
	g.offerNext(c, next)
}

// offerNext offers a channel in which this is next.
func (g *InputGate) offerNext(c *channel, next wire.DataType) {
	if next != wire.TypeNone {
		g.offer(c, next == wire.TypePriorityEvent)
	}
}

// offer puts a channel into the ready or the urgent queue, and wakes the task.
func (g *InputGate) offer(c *channel, urgent bool) {
	g.mu.Lock()
	wake := g.offerLocked(c, urgent)
	g.mu.Unlock()
	g.tell(wake, urgent)
}

// offerLocked says whether the task, which found nothing, is to be woken.
func (g *InputGate) offerLocked(c *channel, urgent bool) (wake bool) {
	switch {
	case g.mu.closed || c.ended:
		return false
	case urgent && !c.urgent:
		g.mu.urgent.pushBack(c)
		c.urgent = true
	case !urgent && !c.queued:
		g.mu.ready.pushBack(c)
		c.queued = true
	}
	wake = g.mu.wanted
	g.mu.wanted = false
	return wake
}

// tell calls the task. No lock is held.
func (g *InputGate) tell(wake, urgent bool) {
	if urgent {
		g.urgent()
	}
	if wake {
		g.wake()
	}
}

// Poll returns the next item, priority items first. It never waits: false means that
// there is none, and that wake will be called. An error is a [*PartitionLost]; it stays.
func (g *InputGate) Poll() (Item, bool, error) { return g.poll(false) }

// PollPriority is Poll for priority items only: what overtook, was moved to the head or
// announces. False means that there is none; wake is not called for it, but the urgent
// function always is.
func (g *InputGate) PollPriority() (Item, bool, error) { return g.poll(true) }

func (g *InputGate) poll(priority bool) (Item, bool, error) {
	for {
		t, err := g.take(priority)
		if err != nil || t.found || t.channel == nil {
			return t.item, t.found, err
		}
		if item, found := g.pollLocal(t.channel, t.urgent); found {
			return item, true, nil
		}
	}
}

// taken is a channel whose turn it is, and its item if it is remote. A queue of another
// task is not read under our lock.
type taken struct {
	channel *channel // nil if it is nobody's turn
	urgent  bool     // for priority items only
	item    Item
	found   bool
}

func (g *InputGate) take(priority bool) (taken, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.mu.err == nil {
		c, urgent := g.nextLocked(priority)
		if c == nil {
			break
		}
		switch {
		case c.ended || c.blocked && !c.leftLocked():
		case c.local != nil:
			return taken{channel: c, urgent: urgent}, nil
		case c.remote == nil || c.remote.queue.len() == 0:
		case urgent && c.remote.priority == 0:
			g.offerLocked(c, false)
		default:
			item := c.remote.takeLocked()
			g.afterPollLocked(c, &item, c.remote.nextLocked())
			return taken{channel: c, item: item, found: true}, nil
		}
	}
	if !priority {
		g.mu.wanted = g.mu.err == nil
	}
	return taken{}, g.mu.err
}

// nextLocked takes a channel out of a queue; nil if there is none.
func (g *InputGate) nextLocked(priority bool) (c *channel, urgent bool) {
	switch {
	case g.mu.urgent.len() > 0:
		c = g.mu.urgent.popFront()
		c.urgent = false
		return c, true
	case g.mu.ready.len() > 0 && !priority:
		c = g.mu.ready.popFront()
		c.queued = false
	}
	return c, false
}

func (g *InputGate) pollLocal(c *channel, urgent bool) (Item, bool) {
	var p partition.Polled
	var outcome partition.Outcome
	if urgent {
		p, outcome = c.local.PollPriority()
	} else {
		p, outcome = c.local.Poll(true)
	}
	switch outcome {
	case partition.Nothing:
		g.offerNext(c, p.Next)
		return Item{}, false
	case partition.Ended:
		g.Fail(c.index, c.local.Err())
		return Item{}, false
	}
	item := Item{Type: p.Type, Data: p.Data, Event: p.Event, Spent: p.Spent, Announcement: p.Announcement}
	g.mu.Lock()
	defer g.mu.Unlock()
	c.complete = c.complete || p.Last
	g.afterPollLocked(c, &item, p.Next)
	return item, true
}

// afterPollLocked counts an item and queues its channel again if there is more.
func (g *InputGate) afterPollLocked(c *channel, item *Item, next wire.DataType) {
	item.Channel = c.index
	if item.Type == wire.TypeData {
		c.consumed.Add(int64(item.Data.Len()))
	}
	c.blocked = c.blocked || item.Type.Blocks()
	if next != wire.TypeNone && (!c.blocked || c.leftLocked()) {
		g.offerLocked(c, next == wire.TypePriorityEvent)
	}
	item.More = g.mu.ready.len() > 0 || g.mu.urgent.len() > 0
}

// leftLocked says whether a blocked channel has something of before its barrier, which was
// moved past it; the sender has stopped since. It is polled: it may hold the only buffer
// that another channel could have, whose barrier stands behind data.
func (c *channel) leftLocked() bool {
	return c.remote != nil && c.remote.priority == 0 && c.remote.queue.len() > 0
}

// Resume lets a channel go on after a blocking event.
func (g *InputGate) Resume(channel int) {
	c := g.channels[channel]
	g.mu.Lock()
	assert.That(c.blocked || c.ended || g.mu.err != nil || g.mu.closed, "resume of channel %d, which is not blocked", channel)
	if !c.blocked || c.ended || g.mu.closed {
		g.mu.Unlock()
		return
	}
	c.blocked = false
	local, remote := c.local, c.remote
	g.mu.Unlock()

	if remote != nil {
		remote.resume()
		return
	}
	next, err := local.Resume()
	if err != nil {
		g.Fail(channel, err)
		return
	}
	g.offerNext(c, next)
}

// End says that the channel's last event was taken; the channel is closed. Idempotent.
func (g *InputGate) End(channel int) {
	c := g.channels[channel]
	g.mu.Lock()
	ended, local := c.ended, c.local
	c.ended, c.blocked = true, false
	g.mu.Unlock()
	if !ended {
		c.close(local)
	}
}

// close ends a channel on both sides. No lock is held.
func (c *channel) close(local *partition.Subpartition) {
	switch {
	case c.remote != nil:
		c.remote.close()
	case local != nil:
		local.Release()
	}
}

// Fail says that a channel's producer is gone, for any goroutine. It means nothing
// if the channel's last event has arrived.
func (g *InputGate) Fail(channel int, err error) {
	c := g.channels[channel]
	g.mu.Lock()
	if c.ended || c.complete || g.mu.closed || g.mu.err != nil {
		g.mu.Unlock()
		return
	}
	g.mu.err = &PartitionLost{Producer: c.producer, Err: err}
	wake := g.mu.wanted
	g.mu.wanted = false
	g.mu.Unlock()
	if wake {
		g.wake()
	}
}

// Close ends all channels and gives all buffers back, except views that the task
// still holds. Idempotent.
func (g *InputGate) Close() {
	g.mu.Lock()
	closed := g.mu.closed
	g.mu.closed = true
	g.mu.ready, g.mu.urgent = ring[*channel]{}, ring[*channel]{}
	g.mu.waiting = ring[*RemoteChannel]{}
	g.mu.missing = 0
	g.mu.Unlock()
	if closed {
		return
	}
	for i := range g.channels {
		g.End(i)
	}
	if g.pool != nil {
		g.pool.Close()
	}
}

// QueuedBytes is how much the channels hold that was not polled, as far as it is in
// this process: for local channels that is the producer's queue.
func (g *InputGate) QueuedBytes() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	var n int64
	for _, c := range g.channels {
		if c.local != nil && !c.ended {
			n += c.local.QueuedBytes()
		}
		if c.remote != nil {
			n += c.remote.queuedLocked()
		}
	}
	return n
}

// Consumed is the number of bytes of elements that were polled from a channel, in all.
func (g *InputGate) Consumed(channel int) int64 { return g.channels[channel].consumed.Load() }

// BuffersInUse is the number of segments of the gate that are in somebody's hands.
func (g *InputGate) BuffersInUse() int {
	if g.pool == nil {
		return 0
	}
	return g.pool.Used()
}
