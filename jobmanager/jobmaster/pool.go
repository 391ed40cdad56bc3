package jobmaster

import (
	"context"
	"sync"

	"github.com/weirflow/weir/internal/group"
)

// Widths of the pools: how many calls of a class are under way at a time.
const (
	storageWidth  = 8
	deletionWidth = 4
)

// Pools are the bounded pools on which all jobs of a leader make blocking calls.
type Pools struct {
	storage  *pool // metadata and etcd
	deletion *pool // files that nobody needs
}

// NewPools returns pools whose goroutines run in g.
func NewPools(g *group.Group) *Pools {
	return &Pools{storage: newPool(g, "job/io/storage", storageWidth), deletion: newPool(g, "job/io/deletion", deletionWidth)}
}

// Delete runs a deletion some time later.
func (p *Pools) Delete(fn func(ctx context.Context)) { p.deletion.do(fn) }

// pool runs calls on at most width goroutines, in order of their arrival. An idle
// pool has none.
type pool struct {
	group *group.Group
	name  string
	width int

	mu struct {
		sync.Mutex
		queue   []func(ctx context.Context)
		workers int
	}
}

func newPool(g *group.Group, name string, width int) *pool {
	return &pool{group: g, name: name, width: width}
}

// do runs fn some time later. After the group was stopped fn is dropped.
func (p *pool) do(fn func(ctx context.Context)) {
	p.mu.Lock()
	p.mu.queue = append(p.mu.queue, fn)
	hire := p.mu.workers < p.width
	if hire {
		p.mu.workers++
	}
	p.mu.Unlock()
	if hire {
		// A refusal means that the group was stopped: nobody waits for the call.
		_ = p.group.Go(p.name, p.work)
	}
}

// work runs calls until there are none.
func (p *pool) work(ctx context.Context) error {
	for {
		p.mu.Lock()
		if len(p.mu.queue) == 0 || ctx.Err() != nil {
			p.mu.workers--
			p.mu.Unlock()
			return nil
		}
		fn := p.mu.queue[0]
		p.mu.queue = p.mu.queue[1:]
		p.mu.Unlock()
		fn(ctx)
	}
}
