package scheduling

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/execgraph"
)

// SlotsNeeded is how many slots a job needs: its largest parallelism.
func SlotsNeeded(plan *jobgraph.JobGraph) int {
	n := 0
	for i := range plan.Vertices {
		n = max(n, plan.Vertices[i].Parallelism)
	}
	return n
}

// share is one slot, shared by the subtasks of one number.
type share struct {
	at       execgraph.Location
	held     bool               // at is ours
	previous weir.TaskManagerID // that had the share before it was lost; zero: none
}

// Scheduler places the subtasks of one job. Only the job's core may call it.
type Scheduler struct {
	shares []share
}

// New returns a scheduler without slots.
func New(plan *jobgraph.JobGraph) *Scheduler {
	return &Scheduler{shares: make([]share, SlotsNeeded(plan))}
}

// Missing returns one entry for each slot that the job still needs: the TaskManager
// that would be best, or the zero id.
func (s *Scheduler) Missing() []weir.TaskManagerID {
	var wants []weir.TaskManagerID
	for i := range s.shares {
		if !s.shares[i].held {
			wants = append(wants, s.shares[i].previous)
		}
	}
	return wants
}

// Grant takes the slots that were missing, in the order of Missing. More or fewer
// are an error, and change nothing.
func (s *Scheduler) Grant(slots []execgraph.Location) error {
	if missing := len(s.Missing()); missing != len(slots) {
		return fmt.Errorf("%d slots granted, %d are missing", len(slots), missing)
	}
	for i := range s.shares {
		if sh := &s.shares[i]; !sh.held {
			*sh = share{at: slots[0], held: true, previous: slots[0].TaskManager}
			slots = slots[1:]
		}
	}
	return nil
}

// Lose drops the slots of a lost TaskManager and says how many there were.
func (s *Scheduler) Lose(id weir.TaskManagerID, incarnation weir.Incarnation) int {
	n := 0
	for i := range s.shares {
		if sh := &s.shares[i]; sh.held && sh.at.TaskManager == id && sh.at.Incarnation == incarnation {
			sh.held = false
			n++
		}
	}
	return n
}

// Place returns where a subtask goes; false if its slot is missing.
func (s *Scheduler) Place(id weir.SubtaskID) (execgraph.Location, bool) {
	assert.That(int(id.Subtask) < len(s.shares), "no slot for subtask", id.Subtask)
	sh := s.shares[id.Subtask]
	return sh.at, sh.held
}
