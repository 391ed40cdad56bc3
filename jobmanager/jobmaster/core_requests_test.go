package jobmaster

import (
	"slices"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/snapshotmeta"
)

// TestFinishedVertices: who is deployed as finished. A vertex that has another producer
// than in the snapshot has work to do.
func TestFinishedVertices(t *testing.T) {
	snapshot := func(finished ...weir.SubtaskID) *snapshotmeta.Snapshot {
		s := snapshotmeta.New(snapshotmeta.Header{Vertices: snapshotmeta.Vertices(testGraph(2, 2, 0))})
		for v := range int32(2) {
			for i := range int32(2) {
				id := weir.SubtaskID{Vertex: v, Subtask: i}
				op := weir.OperatorSubtaskState{Operator: s.Operators[v].ID, Name: s.Operators[v].Name}
				state := weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{op}, Finished: slices.Contains(finished, id)}
				if err := s.AddTask(id, state); err != nil {
					t.Fatal(err)
				}
			}
		}
		return s
	}
	sources := []weir.SubtaskID{{Vertex: 0, Subtask: 0}, {Vertex: 0, Subtask: 1}}
	all := append(slices.Clone(sources), weir.SubtaskID{Vertex: 1, Subtask: 0}, weir.SubtaskID{Vertex: 1, Subtask: 1})
	fed := testGraph(2, 2, 1) // a source that the snapshot does not know feeds the counter too
	fed.Edges = append(fed.Edges, jobgraph.Edge{Index: 1, From: 2, To: 1, FromOperator: "alone", ToOperator: "count"})
	fed.Vertices = []jobgraph.Vertex{fed.Vertices[0], fed.Vertices[2], fed.Vertices[1]} // producers come first
	fed.Edges[0].To, fed.Edges[1].From, fed.Edges[1].To = 2, 1, 2
	fed.Vertices[2].Inputs = []int{0, 1}
	for name, c := range map[string]struct {
		graph    *jobgraph.JobGraph
		snapshot *snapshotmeta.Snapshot
		want     []bool
	}{
		"nobody":       {testGraph(2, 2, 0), snapshot(), []bool{false, false}},
		"one_source":   {testGraph(2, 2, 0), snapshot(sources[0]), []bool{false, false}},
		"sources":      {testGraph(2, 2, 0), snapshot(sources...), []bool{true, false}},
		"all_rescaled": {testGraph(3, 1, 0), snapshot(all...), []bool{true, true}},
		"only_count":   {testGraph(2, 2, 0), snapshot(all[2:]...), []bool{false, false}},
		"new_producer": {fed, snapshot(all...), []bool{true, false, false}},
	} {
		r := &restoration{snapshot: c.snapshot}
		if got := r.finishedVertices(c.graph); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
