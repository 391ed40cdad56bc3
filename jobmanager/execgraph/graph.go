package execgraph

import (
	"iter"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/jobgraph"
)

// Location is where an attempt runs.
type Location struct {
	TaskManager weir.TaskManagerID
	Incarnation weir.Incarnation
	Slot        int // of the TaskManager's
}

// Execution is one attempt.
type Execution struct {
	ID      weir.AttemptID
	State   State
	At      Location      // valid from Scheduled on
	Failure *weir.Failure // of a failed attempt
}

// subtask is one parallel instance of a vertex.
type subtask struct {
	current  Execution // ID.N == 0 before the first attempt
	previous Location  // of the last attempt that had one
	placed   bool      // whether there is a previous location
}

// Graph is the execution state of one job under one leader. Only its job's core may
// call it.
type Graph struct {
	job    weir.JobID
	epoch  weir.LeaderEpoch
	plan   *jobgraph.JobGraph
	tasks  [][]subtask // by vertex and subtask
	counts [Failed + 1]int
	total  int
}

// New returns the graph of a job in which no subtask has an attempt yet. The plan
// is not changed by anybody afterwards.
func New(job weir.JobID, epoch weir.LeaderEpoch, plan *jobgraph.JobGraph) *Graph {
	g := &Graph{job: job, epoch: epoch, plan: plan, tasks: make([][]subtask, len(plan.Vertices))}
	for v := range plan.Vertices {
		g.tasks[v] = make([]subtask, plan.Vertices[v].Parallelism)
		g.total += len(g.tasks[v])
	}
	return g
}

// Plan is the physical plan.
func (g *Graph) Plan() *jobgraph.JobGraph { return g.plan }

// Total is the number of subtasks.
func (g *Graph) Total() int { return g.total }

// Count is the number of subtasks whose current attempt is in this state.
func (g *Graph) Count(s State) int { return g.counts[s] }

// Current returns the current attempt of a subtask; its number is 0 if there has
// been none.
func (g *Graph) Current(id weir.SubtaskID) Execution { return g.at(id).current }

// Find returns the current execution if it is this attempt.
func (g *Graph) Find(id weir.AttemptID) (Execution, bool) {
	t := g.lookup(id)
	if t == nil || t.current.ID != id {
		return Execution{}, false
	}
	return t.current, true
}

// Previous returns where the last attempt of a subtask ran, if there was one.
func (g *Graph) Previous(id weir.SubtaskID) (Location, bool) {
	t := g.at(id)
	return t.previous, t.placed
}

// Subtasks yields all subtasks by vertex and number.
func (g *Graph) Subtasks() iter.Seq[weir.SubtaskID] {
	return func(yield func(weir.SubtaskID) bool) {
		for v := range g.tasks {
			for i := range g.tasks[v] {
				if !yield(weir.SubtaskID{Vertex: int32(v), Subtask: int32(i)}) {
					return
				}
			}
		}
	}
}

// Executions yields the current attempts by vertex and subtask, without the
// subtasks that had none.
func (g *Graph) Executions() iter.Seq[Execution] {
	return func(yield func(Execution) bool) {
		for id := range g.Subtasks() {
			if x := g.at(id).current; x.ID.N > 0 && !yield(x) {
				return
			}
		}
	}
}

// at returns a subtask that must exist.
func (g *Graph) at(id weir.SubtaskID) *subtask {
	assert.That(g.has(id), "no such subtask", id.Vertex, id.Subtask)
	return &g.tasks[id.Vertex][id.Subtask]
}

// lookup returns the subtask that an attempt from outside names, or nil.
func (g *Graph) lookup(id weir.AttemptID) *subtask {
	if id.Job != g.job || id.Epoch != g.epoch || !g.has(id.SubtaskID()) {
		return nil
	}
	return &g.tasks[id.Vertex][id.Subtask]
}

func (g *Graph) has(id weir.SubtaskID) bool {
	return id.Vertex >= 0 && int(id.Vertex) < len(g.tasks) && id.Subtask >= 0 && int(id.Subtask) < len(g.tasks[id.Vertex])
}
