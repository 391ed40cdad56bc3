package gate

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/wire"
)

// ToHead moves the announced barrier of a checkpoint to the head of its channel; the
// next Poll or PollPriority that comes to the channel finds it, unchanged. It returns
// false if the barrier is not queued any more, or was made to overtake.
func (g *InputGate) ToHead(channel int, id weir.CheckpointID) bool {
	c := g.channels[channel]
	g.mu.Lock()
	local := c.local
	moved := !c.ended && c.remote != nil && c.remote.toHeadLocked(id)
	if moved {
		g.offerLocked(c, true)
	}
	g.mu.Unlock()
	if local != nil {
		return local.ToHead(id) // which notifies
	}
	return moved
}

// CaptureQueued gives to take what a barrier left behind in its channel: the bytes, in
// order, of the segments that are queued on this side although they were sent before
// it, each with its base timestamp. The barrier must be what Poll or PollPriority
// returned last; the segments stay queued. take must not keep the bytes.
//
// What an overtaking barrier passed in a queue within this process the producer has
// captured, and there is nothing here; what a barrier passed in ToHead is here.
func (g *InputGate) CaptureQueued(barrier Item, take func(base int64, b []byte)) {
	c := g.channels[barrier.Channel]
	var views []buffer.View
	g.mu.Lock()
	local := c.local
	if c.remote != nil {
		views = c.remote.beforeLocked(barrier.Sequence)
	}
	g.mu.Unlock()
	if local != nil {
		views = local.Overtaken()
	}
	for _, v := range views {
		if v.Len() > 0 {
			take(v.Base(), v.Bytes())
		}
		v.Release()
	}
}

// Overtaking is the newest checkpoint of which an overtaking barrier is queued in a
// channel; weir.NoCheckpoint if there is none. A checkpoint older than that needs no
// start: it will not come to its end (O-INP-03).
func (g *InputGate) Overtaking(channel int) (id weir.CheckpointID) {
	c := g.channels[channel]
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case c.ended:
	case c.local != nil:
		return c.local.Overtaking()
	case c.remote != nil:
		for i := range c.remote.priority {
			if r := c.remote.queue.at(i); !r.announces {
				id = max(id, r.barrier)
			}
		}
	}
	return id
}

// toHeadLocked moves a timeoutable barrier that is queued.
func (c *RemoteChannel) toHeadLocked(id weir.CheckpointID) bool {
	for i := c.priority; i < c.queue.len(); i++ {
		if r := c.queue.at(i); r.typ == wire.TypeAnnouncedEvent && r.barrier == id {
			c.queue.insert(c.priority, c.queue.removeAt(i))
			c.priority++
			return true
		}
	}
	return false
}

// beforeLocked returns the queued segments that were sent before a message.
func (c *RemoteChannel) beforeLocked(sequence uint32) (views []buffer.View) {
	for i := range c.queue.len() {
		if r := c.queue.at(i); r.typ == wire.TypeData && (int32(r.sequence-sequence) < 0 || planted.Is(planted.QueuedTooMany)) {
			views = append(views, r.data.Clone())
		}
	}
	if n := len(views); n > 0 && planted.Is(planted.QueuedOneLess) {
		views[n-1].Release()
		views = views[:n-1]
	}
	return views
}

// barrierOf is the checkpoint whose barrier an event is; weir.NoCheckpoint if it is none.
func barrierOf(event []byte) weir.CheckpointID {
	e, err := wire.DecodeEvent(event)
	if b, ok := e.(wire.Barrier); ok && err == nil {
		return b.ID
	}
	return weir.NoCheckpoint
}
