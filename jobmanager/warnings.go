package jobmanager

import (
	"fmt"

	"github.com/weirflow/weir/jobgraph"
)

// unevenKeyGroups warns of vertices whose subtasks own very different numbers of key
// groups (DECISIONS 20).
func unevenKeyGroups(graph *jobgraph.JobGraph) []string {
	const tolerated = 0.05
	var warnings []string
	for i := range graph.Vertices {
		v := &graph.Vertices[i]
		if !v.Keyed || v.MaxParallelism%v.Parallelism == 0 {
			continue
		}
		mean := float64(v.MaxParallelism) / float64(v.Parallelism)
		most := float64(v.MaxParallelism/v.Parallelism + 1)
		if over := most/mean - 1; over > tolerated {
			warnings = append(warnings, fmt.Sprintf(
				"%s: %d key groups over %d subtasks: the busiest owns %.0f%% more than the mean; a maximum parallelism that is a multiple of the parallelism is even",
				v.Name, v.MaxParallelism, v.Parallelism, over*100))
		}
	}
	return warnings
}

// unread warns of operators whose records nobody takes. Such an operator runs, as users of
// such systems expect, for it may do its work aside; but more often its consumer was
// forgotten. Side outputs that nobody reads are usual, and so are main outputs of those
// whose side outputs are read.
func unread(g *jobgraph.Logical) []string {
	read := make(map[string]bool)
	for i := range g.Operators {
		for _, in := range g.Operators[i].Inputs {
			read[in.From] = true
		}
	}
	var warnings []string
	for i := range g.Operators {
		if o := &g.Operators[i]; o.Kind != jobgraph.KindSink && !read[o.Name] {
			warnings = append(warnings, fmt.Sprintf("operator %q: nothing takes its records: it runs, and they are dropped", o.Name))
		}
	}
	return warnings
}
