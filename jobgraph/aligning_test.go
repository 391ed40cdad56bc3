package jobgraph_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirflow/weir/jobgraph"
)

// way is an edge of a small graph; vertices are letters, s and t sources.
type way struct {
	from, to string
	by       jobgraph.Partitioning
}

// TestAligning: which vertices align (behaviour §17).
func TestAligning(t *testing.T) {
	t.Parallel()
	const forward, hash, rebalance, broadcast = jobgraph.Forward, jobgraph.Hash, jobgraph.Rebalance, jobgraph.Broadcast
	for _, c := range []struct {
		name  string
		ways  []way
		align []string
	}{
		{"edges that overtake", []way{{"s", "a", hash}, {"a", "b", rebalance}}, nil},
		{"an edge that aligns", []way{{"s", "a", hash}, {"a", "b", forward}, {"b", "c", hash}}, []string{"b"}},
		{"one among those into a vertex", []way{{"s", "a", hash}, {"t", "a", broadcast}}, []string{"a"}},
		{"one after the other", []way{{"s", "a", forward}, {"a", "b", hash}, {"b", "c", forward}}, []string{"a", "c"}},
		{"two ways from a source", []way{{"s", "a", hash}, {"a", "d", forward}, {"s", "d", hash}}, []string{"d"}},
		{"two ways from a vertex that overtakes",
			[]way{{"s", "a", hash}, {"a", "y", hash}, {"y", "d", forward}, {"a", "d", forward}}, []string{"d"}},
		{"two ways from one that aligns",
			[]way{{"s", "a", forward}, {"a", "y", hash}, {"y", "d", forward}, {"a", "d", hash}}, []string{"a", "d", "y"}},
		{"two ways from one that aligns, over others",
			[]way{{"s", "a", forward}, {"a", "y", hash}, {"y", "z", hash}, {"z", "d", forward}, {"a", "x", hash}, {"x", "d", hash}},
			[]string{"a", "d", "x", "y", "z"}},
		{"two ways that join where barriers overtake",
			[]way{{"s", "a", forward}, {"a", "y", hash}, {"y", "d", hash}, {"a", "d", hash}}, []string{"a"}},
		{"two ways that joined before",
			[]way{{"s", "a", forward}, {"a", "x", hash}, {"a", "y", hash}, {"x", "z", hash}, {"y", "z", hash}, {"z", "d", forward}}, []string{"a", "d"}},
		{"two edges of one vertex", []way{{"s", "a", forward}, {"a", "y", hash}, {"y", "d", forward}, {"y", "d", hash}}, []string{"a", "d"}},
		{"one makes another", // y aligns because of a and d, and then z because of y and e
			[]way{{"s", "a", forward}, {"a", "y", hash}, {"y", "d", forward}, {"a", "d", hash}, {"y", "z", hash}, {"z", "e", forward}, {"y", "e", hash}},
			[]string{"a", "d", "e", "y", "z"}},
	} {
		g, names := graphOf(c.ways)
		var got []string
		for v, aligns := range g.Aligning() {
			if aligns {
				got = append(got, names[v])
			}
		}
		slices.Sort(got)
		if fmt.Sprint(got) != fmt.Sprint(c.align) {
			t.Errorf("%s: %v align, want %v", c.name, got, c.align)
		}
	}
}

func graphOf(ways []way) (*jobgraph.JobGraph, []string) {
	g := &jobgraph.JobGraph{}
	var names []string
	vertex := func(name string) int {
		if i := slices.Index(names, name); i >= 0 {
			return i
		}
		names = append(names, name)
		g.Vertices = append(g.Vertices, jobgraph.Vertex{Index: len(g.Vertices), Name: name})
		return len(names) - 1
	}
	for i, w := range ways {
		from, to := vertex(w.from), vertex(w.to)
		g.Edges = append(g.Edges, jobgraph.Edge{Index: i, From: from, To: to, Partitioning: w.by})
		g.Vertices[from].Outputs = append(g.Vertices[from].Outputs, i)
		g.Vertices[to].Inputs = append(g.Vertices[to].Inputs, i)
	}
	return g, names
}
