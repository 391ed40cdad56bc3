package heap

import (
	"fmt"
	"sync"

	"github.com/weirflow/weir/internal/assert"
)

// DefaultPoolBytes is the bound of recycled pages that a process keeps unless
// told otherwise.
const DefaultPoolBytes = 128 << 20

// PagePool recycles pages between the backends of a process. A snapshot copies
// each page that is written while it is outstanding; fresh memory for these
// copies would cost many times the copy. All methods may be called from any
// goroutine.
type PagePool struct {
	limit int // pages kept at most

	mu struct {
		sync.Mutex
		idle  []*page
		inUse int64
		fresh int64
		// known holds the idle pages in invariant builds.
		known map[*page]struct{}
	}
}

// PoolStats are counts of a pool's pages.
type PoolStats struct {
	InUse int64 // taken and not given back, the pages of large entries included
	Idle  int64
	Fresh int64 // allocated so far, because none was idle
}

// NewPagePool returns a pool that keeps at most so many bytes of idle pages.
// With 0, it recycles nothing.
func NewPagePool(limitBytes int64) *PagePool {
	p := &PagePool{limit: int(limitBytes / pageSize)}
	if assert.Enabled {
		p.mu.known = make(map[*page]struct{})
	}
	return p
}

// Stats counts the pages.
func (p *PagePool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PoolStats{InUse: p.mu.inUse, Idle: int64(len(p.mu.idle)), Fresh: p.mu.fresh}
}

// take appends n empty pages to into. It appends fewer, but at least one, rather
// than allocating more than one.
func (p *PagePool) take(into []*page, n int) []*page {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, len(p.mu.idle))
	if n == 0 {
		p.mu.inUse++
		p.mu.fresh++
		pg := new(page)
		pg.reset()
		return append(into, pg)
	}
	rest := len(p.mu.idle) - n
	for i, pg := range p.mu.idle[rest:] {
		if assert.Enabled {
			delete(p.mu.known, pg)
			checkMangled(pg)
		}
		pg.reset()
		into = append(into, pg)
		p.mu.idle[rest+i] = nil
	}
	p.mu.idle = p.mu.idle[:rest]
	p.mu.inUse += int64(n)
	return into
}

// give takes pages back. The caller must not touch them any more.
func (p *PagePool) give(pages []*page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.inUse -= int64(len(pages))
	assert.That(p.mu.inUse >= 0, "page pool: %d pages in use", p.mu.inUse)
	for _, pg := range pages {
		if assert.Enabled {
			_, twice := p.mu.known[pg]
			assert.That(!twice, "page pool: page given back twice")
		}
		if len(p.mu.idle) >= p.limit {
			continue
		}
		if assert.Enabled {
			p.mu.known[pg] = struct{}{}
			mangle(pg)
		}
		p.mu.idle = append(p.mu.idle, pg)
	}
}

// takeLarge returns the first of n pages that lie side by side. They are not
// recycled.
func (p *PagePool) takeLarge(n int) *page {
	pages := make([]page, n)
	pages[0].reset()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.inUse += int64(n)
	return &pages[0]
}

func (p *PagePool) giveLarge(first *page, n int) {
	if assert.Enabled {
		mangle(first)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.inUse -= int64(n)
	assert.That(p.mu.inUse >= 0, "page pool: %d pages in use", p.mu.inUse)
}

const mangled = 0xdb

// mangle makes whoever still reads a recycled page see nonsense.
func mangle(pg *page) {
	for i := range pg.b {
		pg.b[i] = mangled
	}
}

// checkMangled finds whoever wrote to a recycled page.
func checkMangled(pg *page) {
	for i, c := range pg.b {
		if c != mangled {
			assert.That(false, "page pool: byte %d of an idle page was written", i)
		}
	}
}

func (s PoolStats) String() string {
	return fmt.Sprintf("%d pages in use, %d idle, %d allocated", s.InUse, s.Idle, s.Fresh)
}
