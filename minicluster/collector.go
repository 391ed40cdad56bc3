package minicluster

import (
	"slices"
	"sync"

	"github.com/weirflow/weir/flow"
)

// Collector keeps what its sinks are given, of all subtasks and attempts: what a job
// emits again after a restart is there twice. The zero value is ready.
type Collector[T any] struct {
	mu struct {
		sync.Mutex
		values []T
	}
}

// Sink returns a sink that adds to the collector.
func (c *Collector[T]) Sink() flow.Sink[T] {
	return flow.SinkFunc[T](func(_ int64, v T) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mu.values = append(c.mu.values, v)
		return nil
	})
}

// Values returns what there is, in the order in which it came.
func (c *Collector[T]) Values() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.values)
}
