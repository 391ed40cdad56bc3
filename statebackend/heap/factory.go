package heap

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

// Name is the backend's name in state handles.
const Name = "heap"

// Factory makes heap backends that share a pool of pages.
type Factory struct {
	pool *PagePool
}

var _ statebackend.Factory = (*Factory)(nil)

// NewFactory returns a factory whose backends take their pages from the pool. A
// process has one pool, or one for each TaskManager that it plays.
func NewFactory(pool *PagePool) *Factory { return &Factory{pool: pool} }

// Name is "heap".
func (f *Factory) Name() string { return Name }

// New returns an empty backend.
func (f *Factory) New(opts statebackend.Options) (statebackend.Backend, error) {
	kg := opts.KeyGroups
	if opts.MaxParallelism < 1 || opts.MaxParallelism > weir.MaxMaxParallelism {
		return nil, fmt.Errorf("heap backend: maximum parallelism %d is not in 1 to %d", opts.MaxParallelism, weir.MaxMaxParallelism)
	}
	if kg.Len() > 0 && (kg.First < 0 || int(kg.Last) >= opts.MaxParallelism) {
		return nil, fmt.Errorf("heap backend: key groups %v are not in [0,%d]", kg, opts.MaxParallelism-1)
	}
	return newBackend(f.pool, opts), nil
}
