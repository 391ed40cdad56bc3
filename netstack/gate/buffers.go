package gate

import (
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/netstack/wire"
)

// AnnounceBufferSize asks the producer of a channel for segments of at most so many
// bytes from now on (behaviour §22): at least 1, at most [wire.MaxPayload]. Any
// goroutine may call it.
func (g *InputGate) AnnounceBufferSize(channel, size int) {
	assert.That(size >= 1 && size <= wire.MaxPayload, "buffers of %d bytes", size)
	c := g.channels[channel]
	g.mu.Lock()
	c.size = size
	local := c.local
	var up Upstream
	if c.remote != nil && !c.remote.closed {
		up = c.remote.up
	}
	g.mu.Unlock()
	switch {
	case local != nil:
		local.SetBufferSize(size)
	case up != nil:
		up.BufferSize(size)
	}
}

// InFlight estimates how many segments are on their way to the task (behaviour §22):
// those that wait here, and the backlogs of the producers as far as they are known.
func (g *InputGate) InFlight() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, c := range g.channels {
		switch {
		case c.ended:
		case c.local != nil:
			n += c.local.Backlog()
		case c.remote != nil:
			n += c.remote.segments + c.remote.backlog
		}
	}
	return n
}

// PoolUsage is which part of the segments that the channels may have holds data that
// the task has not used up: 0 to 1, and more with overdraft. For channels within this
// process that is the producer's queue.
func (g *InputGate) PoolUsage() float64 {
	used, limit := 0, 0
	if g.pool != nil {
		used, limit = g.pool.Used(), g.pool.Max()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.channels {
		switch {
		case c.ended:
		case c.local != nil:
			n, most := c.local.Segments()
			if most > 0 {
				used, limit = used+n, limit+most
			}
		case c.remote != nil:
			used -= len(c.remote.exclusive) + len(c.remote.floating) // free, held for credit
		}
	}
	if limit == 0 {
		return 0
	}
	return max(0, float64(used)/float64(limit))
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
