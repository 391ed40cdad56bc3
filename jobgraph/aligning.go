package jobgraph

// Aligning says of each vertex whether barriers into it never overtake data (behaviour
// §17). They do not if one of its edges does not allow it; and if an edge into it is on
// one of several ways from a vertex that aligns to another that does, and these ways join
// only there. Else the following could happen, and nobody would go on before the
// checkpoint is over:
//
//  1. Subtask 0 of A emits its barrier, which overtakes on the edge from A to Y. So Y emits
//     its own before subtask 1 of A does.
//  2. D, behind Y, aligns. It takes nothing more from Y, until the barrier of subtask 1
//     of A has come on the other way.
//  3. Y has no room for output, so it takes nothing more from A. Subtask 1 of A has
//     no room for output either, and so does not come to its barrier, which stands
//     behind data, since A aligns.
//
// A vertex whose input barriers overtake, and a source, emit their barriers without room.
func (g *JobGraph) Aligning() []bool {
	aligns := make([]bool, len(g.Vertices))
	for _, e := range g.Edges {
		aligns[e.To] = aligns[e.To] || e.Partitioning.Aligns()
	}
	reach := g.reach()
	for changed := true; changed; {
		changed = false
		for d := range g.Vertices {
			for a := range g.Vertices {
				if aligns[a] && aligns[d] && reach[a][d] && g.forks(reach, a, d) && g.alignBetween(reach, aligns, a, d) {
					changed = true
				}
			}
		}
	}
	return aligns
}

// reach says which vertices can be reached from which, over one edge or more.
func (g *JobGraph) reach() [][]bool {
	reach := make([][]bool, len(g.Vertices))
	var from func(v int) []bool
	from = func(v int) []bool {
		if reach[v] != nil {
			return reach[v]
		}
		reach[v] = make([]bool, len(g.Vertices))
		for _, e := range g.Vertices[v].Outputs {
			to := g.Edges[e].To
			reach[v][to] = true
			for w, there := range from(to) {
				reach[v][w] = reach[v][w] || there
			}
		}
		return reach[v]
	}
	for v := range g.Vertices {
		from(v)
	}
	return reach
}

// forks says whether d has several producers that are a or behind it.
func (g *JobGraph) forks(reach [][]bool, a, d int) bool {
	first := -1
	for _, e := range g.Vertices[d].Inputs {
		p := g.Edges[e].From
		if p != a && !reach[a][p] {
			continue
		}
		if first >= 0 && first != p {
			return true
		}
		first = p
	}
	return false
}

// alignBetween lets all edges on ways from a to d align. It says whether one did not.
func (g *JobGraph) alignBetween(reach [][]bool, aligns []bool, a, d int) (changed bool) {
	for _, e := range g.Edges {
		if (e.From == a || reach[a][e.From]) && (e.To == d || reach[e.To][d]) && !aligns[e.To] {
			aligns[e.To], changed = true, true
		}
	}
	return changed
}
