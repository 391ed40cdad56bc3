package chanstate

import (
	"slices"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
)

// Groups are the channel-state writers of a TaskManager. Any goroutine may call it.
type Groups struct {
	g *group.Group

	// mu is taken before a sharedWriter's lock.
	mu struct {
		sync.Mutex
		byJob map[jobKey][]*sharedWriter // each has subtasks
	}
}

// jobKey keeps leaders apart: attempts of an overtaken one may end late, and nobody is to
// wait for them.
type jobKey struct {
	job   weir.JobID
	epoch weir.LeaderEpoch
}

// NewGroups returns a TaskManager's writers, whose goroutines are of g.
func NewGroups(g *group.Group) *Groups {
	s := &Groups{g: g}
	s.mu.byJob = map[jobKey][]*sharedWriter{}
	return s
}

// Join adds a task to a group of its job, or makes one.
func (g *Groups) Join(o Options) (*Subtask, error) {
	if o.Subtasks <= 0 {
		o.Subtasks = DefaultSubtasks
	}
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	key := jobKey{o.Attempt.Job, o.Attempt.Epoch}
	s := &Subtask{o: o, groups: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.mu.byJob[key] {
		if w.join(s) {
			return s, nil
		}
	}
	w := newSharedWriter(o)
	if err := g.g.Go("chanstate/writer", w.run); err != nil {
		return nil, ErrClosed
	}
	w.join(s)
	g.mu.byJob[key] = append(g.mu.byJob[key], w)
	return s, nil
}

// leave takes a subtask out of its group, and the group out if it was the last.
func (g *Groups) leave(s *Subtask) {
	key := jobKey{s.o.Attempt.Job, s.o.Attempt.Epoch}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !s.writer.leave(s) {
		return
	}
	g.mu.byJob[key] = slices.DeleteFunc(g.mu.byJob[key], func(w *sharedWriter) bool { return w == s.writer })
	if len(g.mu.byJob[key]) == 0 {
		delete(g.mu.byJob, key)
	}
}
