package buffer

import (
	"sync"

	"github.com/weirflow/weir/internal/assert"
)

// LocalOptions say how many buffers a pool may have.
type LocalOptions struct {
	Min       int // set aside, at least 1
	Max       int // at least Min
	Overdraft int // beyond Max, for Overdraft
	// Accounts is how many users share the pool; a buffer is charged to one. Beyond
	// PerAccount buffers of any account the pool is not available, though it still
	// gives buffers. 0 accounts: no such limit.
	Accounts   int
	PerAccount int
	// Listener is called after the pool refused a buffer or said that it is not
	// available, once that may have changed. It is called without a lock, from any
	// goroutine, and must not wait.
	Listener func()
	// Exceeds is asked by a Request that waits: whether it may have a buffer beyond the
	// pool's largest size and its overdraft, of memory that is not the NetworkPool's. It is called
	// without a lock and must not wait. nil: never.
	Exceeds func() bool
}

// LocalPool is the part of a NetworkPool that one result partition or gate may use.
// Any goroutine may call it, but only one at a time Request.
type LocalPool struct {
	network *NetworkPool
	options LocalOptions
	token   chan struct{} // wakes Request; holds at most one token
	shortBy int           // buffers missing from Min; guarded by network.mu

	mu struct {
		sync.Mutex
		free     []*Buffer
		owned    int   // free ones and those in somebody's hands
		accounts []int // buffers in somebody's hands, by account
		over     int   // accounts beyond PerAccount
		excess   int   // buffers in somebody's hands that are not owned: see Exceeds
		wanted   bool  // somebody was refused and is to be told of a change
		closed   bool
		claim    int // of what was set aside, what is not given up
	}
}

var _ Recycler = (*LocalPool)(nil)

// NewLocalPool makes a pool and sets its smallest size aside.
func (n *NetworkPool) NewLocalPool(o LocalOptions) (*LocalPool, error) {
	assert.That(o.Min >= 1 && o.Max >= o.Min && o.Overdraft >= 0, "pool of %d to %d", o.Min, o.Max)
	p := &LocalPool{network: n, options: o, token: make(chan struct{}, 1)}
	p.mu.accounts = make([]int, max(1, o.Accounts))
	p.mu.Lock() // deliver may be called as soon as the pool is known
	defer p.mu.Unlock()
	got, err := n.reserve(p, o.Min)
	if err != nil {
		return nil, err
	}
	p.mu.free, p.mu.owned, p.mu.claim = got, len(got), o.Min
	return p, nil
}

// TryRequest returns a buffer with one reference, charged to an account, or nil if
// there is none now. After nil the listener is called when that may have changed.
func (p *LocalPool) TryRequest(account int) *Buffer { return p.request(account, p.options.Max) }

// Overdraft is TryRequest that may go beyond the pool's largest size.
func (p *LocalPool) Overdraft(account int) *Buffer {
	return p.request(account, p.options.Max+p.options.Overdraft)
}

// Request waits until there is a buffer, or it may exceed the pool. It returns nil when
// stop or the pool is closed.
func (p *LocalPool) Request(account int, stop <-chan struct{}) *Buffer {
	for {
		if b := p.TryRequest(account); b != nil {
			return b
		}
		if p.isClosed() {
			return nil
		}
		if p.options.Exceeds != nil && p.options.Exceeds() {
			if b := p.exceed(account); b != nil {
				return b
			}
		}
		select {
		case <-p.token:
		case <-stop:
			return nil
		}
	}
}

// Hasten makes a Request that waits ask Exceeds again.
func (p *LocalPool) Hasten() {
	select {
	case p.token <- struct{}{}:
	default:
	}
}

// exceed makes a buffer that is nobody's, or returns nil if there are too many such.
func (p *LocalPool) exceed(account int) *Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed || !p.network.exceed() {
		return nil
	}
	p.mu.excess++
	b := newBuffer()
	b.excess = true
	p.chargeLocked(b, account)
	return b
}

func (p *LocalPool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.closed
}

func (p *LocalPool) request(account, limit int) *Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed || !p.fillLocked(limit) {
		p.mu.wanted = true
		return nil
	}
	last := len(p.mu.free) - 1
	b := p.mu.free[last]
	p.mu.free = p.mu.free[:last]
	p.chargeLocked(b, account)
	return b
}

// chargeLocked makes a buffer ready for who requested it.
func (p *LocalPool) chargeLocked(b *Buffer, account int) {
	if p.mu.accounts[account]++; p.options.Accounts > 0 && p.mu.accounts[account] == p.options.PerAccount+1 {
		p.mu.over++
	}
	p.network.used.Add(1)
	b.reset(p)
	b.account = account
}

// fillLocked sees to it that a buffer is free, if at most limit are to be owned.
func (p *LocalPool) fillLocked(limit int) bool {
	if len(p.mu.free) > 0 {
		return true
	}
	if p.mu.owned < p.options.Min || p.mu.owned >= limit { // what is owed comes by itself
		return false
	}
	b := p.network.borrow(p)
	if b == nil {
		return false
	}
	p.mu.owned++
	p.mu.free = append(p.mu.free, b)
	return true
}

// Available says whether a buffer is there within the largest size and no account is
// beyond its limit. After false the listener is called when that may have changed.
func (p *LocalPool) Available() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.over == 0 && !p.mu.closed && p.fillLocked(p.options.Max) {
		return true
	}
	p.mu.wanted = true
	return false
}

// Used is the number of buffers in somebody's hands.
func (p *LocalPool) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.owned - len(p.mu.free) + p.mu.excess
}

// Max is the pool's largest size, without overdraft.
func (p *LocalPool) Max() int { return p.options.Max }

// Exhausted says whether Available would be false, for those who look on: it asks for
// no buffer and no call of the listener. It takes the pool's smallest size as there.
func (p *LocalPool) Exhausted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.over > 0 || p.mu.owned-len(p.mu.free) >= p.options.Max
}

// Recycle implements [Recycler].
func (p *LocalPool) Recycle(b *Buffer) {
	b.mangle()
	p.network.used.Add(-1)
	p.mu.Lock()
	if p.options.Accounts > 0 && p.mu.accounts[b.account] == p.options.PerAccount+1 {
		p.mu.over--
	}
	p.mu.accounts[b.account]--
	assert.That(p.mu.accounts[b.account] >= 0, "account %d gave back more than it had", b.account)
	if b.excess {
		p.mu.excess--
		p.mu.Unlock()
		p.network.exceeding.Add(-1)
		p.changed()
		return
	}
	keep := !p.mu.closed && p.mu.owned <= p.options.Min
	if keep {
		p.mu.free = append(p.mu.free, b)
	} else {
		p.mu.owned--
	}
	give := 0
	if used := p.mu.owned - len(p.mu.free); p.mu.closed && p.mu.claim > used {
		give = p.mu.claim - used
		p.mu.claim = used
	}
	p.mu.Unlock()

	if give > 0 {
		p.network.unreserve(give)
	}
	if !keep {
		p.network.put(b)
	}
	p.changed()
}

// deliver brings a buffer that was owed to the pool. No lock is held.
func (p *LocalPool) deliver(b *Buffer) {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		p.network.put(b)
		return
	}
	p.mu.owned++
	p.mu.free = append(p.mu.free, b)
	p.mu.Unlock()
	p.changed()
}

// changed tells whoever was refused. No lock is held.
func (p *LocalPool) changed() {
	p.mu.Lock()
	wanted := p.mu.wanted
	p.mu.wanted = false
	p.mu.Unlock()
	if !wanted {
		return
	}
	select {
	case p.token <- struct{}{}:
	default:
	}
	if p.options.Listener != nil {
		p.options.Listener()
	}
}

// Close gives back what is free now, and the rest when it is recycled. A waiting
// Request returns nil. Idempotent.
func (p *LocalPool) Close() {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return
	}
	p.mu.closed = true
	free := p.mu.free
	p.mu.free = nil
	p.mu.owned -= len(free)
	give := max(0, p.mu.claim-p.mu.owned)
	p.mu.claim -= give
	p.mu.wanted = true
	p.mu.Unlock()

	p.network.forget(p)
	p.network.unreserve(give)
	for _, b := range free {
		p.network.put(b)
	}
	p.changed()
}
