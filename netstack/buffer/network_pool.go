package buffer

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir/internal/assert"
)

// NetworkPool is a process's budget of segments. Memory is allocated when it is first
// needed; of what is free, that is reused first which has been free for longest.
type NetworkPool struct {
	total int
	used  atomic.Int64 // buffers that local pools gave out and did not get back
	// exceeding is how many of those are beyond total.
	exceeding atomic.Int64

	mu struct {
		sync.Mutex
		free     freeList
		made     int          // buffers that exist
		reserved int          // sum of what is set aside for local pools
		short    []*LocalPool // pools that do not have their smallest size yet, oldest first
		waiting  []*LocalPool // pools that were refused a buffer beyond their smallest size
		closed   bool
	}
}

// Stats are the figures of a NetworkPool, in buffers.
type Stats struct {
	Total    int // the budget
	Reserved int // set aside for pools
	Used     int // in somebody's hands
	Excess   int // of those, beyond the budget
}

// leastExcess is how many buffers a pool of any size may be exceeded by: enough for a
// record of 256 MiB, the largest that there may be.
const leastExcess = 256<<20/Capacity + 2

// NewNetworkPool makes a pool of a number of segments.
func NewNetworkPool(total int) *NetworkPool { return &NetworkPool{total: total} }

// Stats returns the figures now.
func (n *NetworkPool) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Stats{Total: n.total, Reserved: n.mu.reserved, Used: int(n.used.Load()), Excess: int(n.exceeding.Load())}
}

// Close ends the pool. It returns [ErrLeaked] if a local pool still owns buffers.
func (n *NetworkPool) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.closed = true
	if out := n.mu.made - n.mu.free.n; out != 0 || n.mu.reserved != 0 || n.exceeding.Load() != 0 {
		return fmt.Errorf("%d out, %d set aside: %w", out, n.mu.reserved, ErrLeaked)
	}
	n.mu.free = freeList{}
	return nil
}

// availableLocked is how many buffers no local pool owns.
func (n *NetworkPool) availableLocked() int { return n.mu.free.n + n.total - n.mu.made }

// takeLocked gets an unowned buffer.
func (n *NetworkPool) takeLocked() *Buffer {
	if b := n.mu.free.pop(); b != nil {
		return b
	}
	assert.That(n.mu.made < n.total, "all %d buffers exist", n.total)
	n.mu.made++
	return newBuffer()
}

// exceed says whether one more buffer beyond the budget may be made, and counts it. There
// may be as many as the budget has, or leastExcess.
func (n *NetworkPool) exceed() bool {
	if n.exceeding.Add(1) <= int64(max(n.total, leastExcess)) {
		return true
	}
	n.exceeding.Add(-1)
	return false
}

// reserve sets buffers aside for a new pool and returns those it can have now. The
// others come as soon as their borrowers return them.
func (n *NetworkPool) reserve(p *LocalPool, min int) ([]*Buffer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.closed {
		return nil, ErrClosed
	}
	if left := n.total - n.mu.reserved; min > left {
		return nil, fmt.Errorf("want %d, have %d of %d: %w", min, left, n.total, ErrInsufficientBuffers)
	}
	n.mu.reserved += min
	got := make([]*Buffer, 0, min)
	for len(got) < min && n.availableLocked() > 0 {
		got = append(got, n.takeLocked())
	}
	if p.shortBy = min - len(got); p.shortBy > 0 {
		n.mu.short = append(n.mu.short, p)
	}
	return got, nil
}

// borrow gets a buffer beyond a pool's smallest size, or notes that the pool waits.
func (n *NetworkPool) borrow(p *LocalPool) *Buffer {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.closed {
		return nil
	}
	if len(n.mu.short) == 0 && n.availableLocked() > 0 {
		return n.takeLocked()
	}
	if !slices.Contains(n.mu.waiting, p) {
		n.mu.waiting = append(n.mu.waiting, p)
	}
	return nil
}

// put takes back a buffer that no local pool owns any more, and tells one pool that
// waits for more than its smallest size. If that one does not take it, the others
// are told when the next buffer comes: none needs it to get on. No lock is held.
func (n *NetworkPool) put(b *Buffer) {
	n.mu.Lock()
	if len(n.mu.short) > 0 {
		p := n.mu.short[0]
		if p.shortBy--; p.shortBy == 0 {
			n.mu.short = slices.Delete(n.mu.short, 0, 1)
		}
		n.mu.Unlock()
		p.deliver(b)
		return
	}
	n.mu.free.push(b)
	var p *LocalPool
	if len(n.mu.waiting) > 0 {
		p = n.mu.waiting[0]
		n.mu.waiting = slices.Delete(n.mu.waiting, 0, 1)
	}
	n.mu.Unlock()
	if p != nil {
		p.changed()
	}
}

// unreserve gives up part of what was set aside for a pool.
func (n *NetworkPool) unreserve(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.reserved -= count
	assert.That(n.mu.reserved >= 0, "%d set aside", n.mu.reserved)
}

// forget removes a pool that closes from the lists.
func (n *NetworkPool) forget(p *LocalPool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.shortBy = 0
	n.mu.short = remove(n.mu.short, p)
	n.mu.waiting = remove(n.mu.waiting, p)
}

func remove(list []*LocalPool, p *LocalPool) []*LocalPool {
	if i := slices.Index(list, p); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
