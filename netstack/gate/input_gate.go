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
	// More says that another Poll finds something.
	More bool
}

// Options of an InputGate.
type Options struct {
	Channels  []Channel
	Exclusive int // buffers per remote channel, at least 1
	Floating  int // buffers for all remote channels together, at least 1
	Network   *buffer.NetworkPool
	// Wake is called without a lock, from any goroutine, when there is something
	// after Poll had found nothing. It must not wait.
	Wake func()
}

// Channel says who produces a channel, and whether in another process.
type Channel struct {
	Producer weir.AttemptID
	Remote   bool
}

// InputGate is one input of a task. Poll, Resume, End and Close are for the task's
// goroutine.
type InputGate struct {
	channels []*channel
	pool     *buffer.LocalPool // nil if no channel is remote
	wake     func()

	mu struct {
		sync.Mutex
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
	blocked  bool                    // a blocking event was polled
	complete bool                    // the last event has arrived: a failure does no harm
	ended    bool                    // End was called
}

// New makes a gate. It sets the buffers of its remote channels aside, or refuses with
// buffer.ErrInsufficientBuffers.
func New(o Options) (*InputGate, error) {
	g := &InputGate{wake: o.Wake}
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
	assert.That(o.Exclusive >= 1 && o.Floating >= 1, "%d exclusive, %d floating buffers", o.Exclusive, o.Floating)
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
	g.mu.Unlock()
	if gone {
		s.Release()
		return
	}
	switch available, err := s.Attach(func(urgent bool) { g.offer(c, urgent) }); {
	case err != nil:
		g.Fail(channel, err)
	case available:
		g.offer(c, false)
	}
}

// offer puts a channel into the ready queue, and wakes the task if it found nothing.
func (g *InputGate) offer(c *channel, urgent bool) {
	g.mu.Lock()
	wake := g.offerLocked(c, urgent)
	g.mu.Unlock()
	if wake {
		g.wake()
	}
}

func (g *InputGate) offerLocked(c *channel, urgent bool) (wake bool) {
	switch {
	case g.mu.closed || c.ended:
		return false
	case c.queued && !urgent:
	case c.queued:
		for i := range g.mu.ready.len() {
			if *g.mu.ready.at(i) == c {
				g.mu.ready.insert(0, g.mu.ready.removeAt(i))
				break
			}
		}
	case urgent:
		g.mu.ready.insert(0, c)
	default:
		g.mu.ready.pushBack(c)
	}
	c.queued = true
	wake = g.mu.wanted
	g.mu.wanted = false
	return wake
}

// Poll returns the next item. It never waits: false means that there is none, and
// that wake will be called. An error is a [*PartitionLost]; it stays.
func (g *InputGate) Poll() (Item, bool, error) {
	for {
		c, item, found, err := g.pollRemote()
		if err != nil || found || c == nil {
			return item, found, err
		}
		if item, found := g.pollLocal(c); found {
			return item, true, nil
		}
	}
}

// pollRemote takes the next ready channel, and an item of it if it is remote. If it
// is local, it returns the channel: a queue of another task is not read under our lock.
func (g *InputGate) pollRemote() (*channel, Item, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.mu.err == nil && g.mu.ready.len() > 0 {
		c := g.mu.ready.popFront()
		c.queued = false
		if c.ended || c.blocked {
			continue
		}
		if c.local != nil {
			return c, Item{}, false, nil
		}
		if c.remote == nil || c.remote.queue.len() == 0 {
			continue
		}
		item := c.remote.takeLocked()
		g.afterPollLocked(c, &item, c.remote.queue.len() > 0)
		return c, item, true, nil
	}
	g.mu.wanted = g.mu.err == nil
	return nil, Item{}, false, g.mu.err
}

func (g *InputGate) pollLocal(c *channel) (Item, bool) {
	p, outcome := c.local.Poll(true)
	switch outcome {
	case partition.Nothing:
		return Item{}, false
	case partition.Ended:
		g.Fail(c.index, c.local.Err())
		return Item{}, false
	}
	item := Item{Type: p.Type, Data: p.Data, Event: p.Event, Spent: p.Spent}
	g.mu.Lock()
	defer g.mu.Unlock()
	c.complete = c.complete || p.Last
	g.afterPollLocked(c, &item, p.Next != wire.TypeNone)
	return item, true
}

// afterPollLocked counts an item and queues its channel again if there is more.
func (g *InputGate) afterPollLocked(c *channel, item *Item, more bool) {
	item.Channel = c.index
	if item.Type == wire.TypeData {
		c.consumed.Add(int64(item.Data.Len()))
	}
	c.blocked = item.Type.Blocks()
	if more && !c.blocked {
		g.offerLocked(c, false)
	}
	item.More = g.mu.ready.len() > 0
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
	available, err := local.Resume()
	switch {
	case err != nil:
		g.Fail(channel, err)
	case available:
		g.offer(c, false)
	}
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
	g.mu.ready = ring[*channel]{}
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

// buffersChanged is the pool's listener: what came free goes to channels that lack
// exclusive buffers, then to those that want floating ones, in the order they asked.
func (g *InputGate) buffersChanged() {
	var some [8]*RemoteChannel
	due := some[:0]
	g.mu.Lock()
	if g.mu.missing > 0 {
		for _, c := range g.channels {
			if c.remote != nil && c.remote.takeExclusiveLocked() {
				due = append(due, c.remote)
			}
		}
	}
	for g.mu.missing == 0 && g.mu.waiting.len() > 0 {
		c := *g.mu.waiting.at(0)
		if c.grants.Missing() == 0 || c.closed {
			g.mu.waiting.popFront()
			c.waiting = false
			continue
		}
		b := g.pool.TryRequest(0)
		if b == nil {
			break
		}
		c.floating = append(c.floating, b)
		if c.dueLocked(c.grants.Got()) {
			due = append(due, c)
		}
	}
	g.mu.Unlock()
	for _, c := range due {
		c.announceDue()
	}
}
