package netstack

import (
	"context"
	"time"
)

// flush asks the partitions of each task to publish when their buffer timeout has
// passed (DECISIONS 19). The tasks do it when they next look.
func (s *Stack) flush(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	due := make(map[*TaskIO]time.Time) // when each task is asked next
	for {
		now := time.Now()
		next := now.Add(time.Hour)
		tasks := s.flushTasks()
		for t := range due {
			if !tasks[t] {
				delete(due, t)
			}
		}
		for t := range tasks {
			at, known := due[t]
			if !known || !now.Before(at) {
				if known {
					t.requestFlush()
				}
				at = now.Add(t.spec.Buffers.Timeout)
				due[t] = at
			}
			if at.Before(next) {
				next = at
			}
		}
		timer.Reset(next.Sub(now))
		select {
		case <-timer.C:
		case <-s.flushing:
		case <-ctx.Done():
			return nil
		}
	}
}

// flushTasks returns the running tasks with outputs and a buffer timeout.
func (s *Stack) flushTasks() map[*TaskIO]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks := make(map[*TaskIO]bool, len(s.mu.tasks))
	for _, t := range s.mu.tasks {
		if t.state == taskStarted && t.spec.Buffers.Timeout > 0 && len(t.Outputs) > 0 {
			tasks[t] = true
		}
	}
	return tasks
}

func (t *TaskIO) requestFlush() {
	for _, o := range t.Outputs {
		o.RequestFlush()
	}
}
