package jobmaster

import (
	"errors"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// ErrRestore is wrapped by every reason for which a job cannot start from a snapshot.
var ErrRestore = errors.New("the job does not fit the snapshot")

// AdoptMaxParallelism gives vertices whose user set no maximum parallelism the one
// that their state in the snapshot has (behaviour §11).
func AdoptMaxParallelism(graph *jobgraph.JobGraph, s *snapshotmeta.Snapshot) {
	at := vertexOf(graph)
	for i := range s.Operators {
		o := &s.Operators[i]
		v, ok := at[o.ID]
		if ok && hasKeyed(o) && !graph.Vertices[v].MaxConfigured && graph.Vertices[v].Parallelism <= o.MaxParallelism {
			graph.Vertices[v].MaxParallelism = o.MaxParallelism
		}
	}
}

func vertexOf(graph *jobgraph.JobGraph) map[weir.OperatorID]int {
	at := make(map[weir.OperatorID]int)
	for v := range graph.Vertices {
		for _, id := range graph.Vertices[v].IDs {
			at[id] = v
		}
	}
	return at
}

func hasState(o *snapshotmeta.Operator) bool {
	if !o.Coordinator.IsZero() {
		return true
	}
	for i := range o.Subtasks {
		if st := &o.Subtasks[i].State; len(st.Keyed) > 0 || len(st.Elements) > 0 {
			return true
		}
	}
	return false
}

func hasKeyed(o *snapshotmeta.Operator) bool {
	for i := range o.Subtasks {
		if len(o.Subtasks[i].State.Keyed) > 0 {
			return true
		}
	}
	return false
}

// channels returns the in-flight data that a subtask recovers.
func (r *restoration) channels(graph *jobgraph.JobGraph, id weir.SubtaskID) []rpc.RecoveredChannel {
	if r.recovered[id.Vertex] == nil {
		r.recovered[id.Vertex] = recoveredChannels(graph, int(id.Vertex), r.flying)
	}
	return r.recovered[id.Vertex][id.Subtask]
}

// share returns an operator's state by new subtask, or nil if the snapshot does not
// know the operator.
func (r *restoration) share(id weir.OperatorID, vertex *jobgraph.Vertex) []weir.OperatorSubtaskState {
	if share, ok := r.shares[id]; ok {
		return share
	}
	var share []weir.OperatorSubtaskState
	if o := r.snapshot.Operator(id); o != nil {
		old := make([]weir.OperatorSubtaskState, o.Parallelism)
		for i := range old {
			old[i] = weir.OperatorSubtaskState{Operator: o.ID, Name: o.Name}
		}
		for i := range o.Subtasks {
			if t := &o.Subtasks[i]; int(t.Index) < len(old) {
				old[t.Index] = t.State
				old[t.Index].Operator, old[t.Index].Name = o.ID, o.Name
			}
		}
		share = weir.Redistribute(old, vertex.MaxParallelism, vertex.Parallelism)
		if vertex.Parallelism != o.Parallelism {
			spoil(share)
		}
	}
	r.shares[id] = share
	return share
}

// spoil puts in bugs that only tests put in: of what is dealt to subtasks anew.
func spoil(share []weir.OperatorSubtaskState) {
	last := &share[len(share)-1]
	if planted.Is(planted.ElementsDealtTwice) && len(share) > 1 {
		last.Elements = append(last.Elements[:len(last.Elements):len(last.Elements)], share[0].Elements...)
	}
	if planted.Is(planted.KeyGroupsNotDealt) && len(last.Keyed) > 1 {
		last.Keyed = last.Keyed[:1]
	}
}

// reasonFor says why a run starts from a snapshot.
func (c *Core) reasonFor(latest checkpointing.CompletedCheckpoint) string {
	switch {
	case !latest.Foreign && latest.Kind.IsSavepoint():
		return "the savepoint of a stop is the newest snapshot of the job"
	case !latest.Foreign:
		return "it is the newest complete checkpoint of the job"
	case c.everRan:
		return "no newer checkpoint of the job is complete: " + c.spec.Start
	default:
		return c.spec.Start
	}
}
