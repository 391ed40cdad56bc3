package failover

import "github.com/weirflow/weir/jobgraph"

// Regions returns for each vertex the region it belongs to: the sorted vertices
// that are connected to it by edges, itself included. All edges are pipelined, so a
// consumer cannot outlive its producer, nor the other way round. Vertices of one
// region share one slice, which is read only.
func Regions(g *jobgraph.JobGraph) [][]int {
	parent := make([]int, len(g.Vertices))
	for v := range parent {
		parent[v] = v
	}
	root := func(v int) int {
		for parent[v] != v {
			parent[v] = parent[parent[v]]
			v = parent[v]
		}
		return v
	}
	for i := range g.Edges {
		a, b := root(g.Edges[i].From), root(g.Edges[i].To)
		parent[max(a, b)] = min(a, b)
	}
	members := make([][]int, len(parent)) // by root
	for v := range parent {
		members[root(v)] = append(members[root(v)], v)
	}
	regions := make([][]int, len(parent))
	for v := range regions {
		regions[v] = members[root(v)]
	}
	return regions
}
