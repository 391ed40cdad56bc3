package jobmanager

import (
	"context"

	"github.com/weirflow/weir/operator"
)

// buildWidth is how many submissions may be building at a time.
const buildWidth = 4

// builders bounds the builds that run at a time: buildWidth in all, and of one entry
// point one, so that a job whose builder does not return holds up its own
// submissions and nobody else's. Any goroutine may call it.
type builders struct {
	all chan struct{}
	of  map[string]chan struct{} // by entry point; does not change
}

func newBuilders(catalog operator.Catalog) *builders {
	b := &builders{all: make(chan struct{}, buildWidth), of: make(map[string]chan struct{})}
	for _, e := range catalog.Entrypoints() {
		b.of[e.Name] = make(chan struct{}, 1)
	}
	return b
}

// enter waits for a turn to build the entry point; leave ends the turn. An entry point
// that the catalog does not have waits for nobody: its build ends at once.
func (b *builders) enter(ctx context.Context, entrypoint string) (leave func(), err error) {
	own, known := b.of[entrypoint]
	if !known {
		return func() {}, nil
	}
	for _, turn := range []chan struct{}{own, b.all} {
		select {
		case turn <- struct{}{}:
			continue
		case <-ctx.Done():
		}
		if turn == b.all {
			<-own
		}
		return nil, context.Cause(ctx)
	}
	return func() { <-b.all; <-own }, nil
}
