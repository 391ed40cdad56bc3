package failover

import "github.com/weirflow/weir/jobgraph"

// Regions returns for each vertex the region it belongs to: the sorted vertices
// that are connected to it by edges, itself included. Vertices of one region share
// one slice.
func Regions(g *jobgraph.JobGraph) [][]int { return nil }
