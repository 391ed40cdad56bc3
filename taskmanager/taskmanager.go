package taskmanager

import (
	"context"
)

// TaskManager runs subtasks. Its methods may be called from any goroutine.
type TaskManager struct {
	o Options
}

// New returns a TaskManager; it has no effects.
func New(o Options) (*TaskManager, error) {
	o = o.Defaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &TaskManager{o: o}, nil
}

// Start begins to look for a JobManager. It returns at once.
func (t *TaskManager) Start(ctx context.Context) error { return nil }

// Close cancels what runs, waits until it has ended, or until ctx is done, and ends
// the session. Idempotent.
func (t *TaskManager) Close(ctx context.Context) error { return nil }
