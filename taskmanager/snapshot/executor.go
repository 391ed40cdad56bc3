package snapshot

import (
	"context"
	"sync"

	"github.com/weirflow/weir/internal/group"
)

// Executor runs the asynchronous parts of all tasks of a TaskManager on a bounded
// number of workers. Any goroutine may call it.
type Executor struct {
	queue chan func()
	mu    struct {
		sync.Mutex
		closed bool
	}
}

// NewExecutor starts workers in the group, which must outlive the executor's Close.
// At most waiting parts wait for a worker.
func NewExecutor(g *group.Group, workers, waiting int) (*Executor, error) {
	e := &Executor{queue: make(chan func(), waiting)}
	for range workers {
		if err := g.Go("snapshot/worker", e.work); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

// Submit queues a job. It does not wait.
func (e *Executor) Submit(job func()) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.closed {
		return ErrClosed
	}
	select {
	case e.queue <- job:
		return nil
	default:
		return ErrBusy
	}
}

// Close ends the workers when the queue is empty. Their owners have cancelled the jobs
// in it by then: each gives back what it holds, and ends.
func (e *Executor) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.mu.closed {
		e.mu.closed = true
		close(e.queue)
	}
}

// work runs jobs until Close, also after the group was cancelled: what a job holds
// must be given back.
func (e *Executor) work(context.Context) error {
	for job := range e.queue {
		job()
	}
	return nil
}
