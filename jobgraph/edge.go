package jobgraph

import "github.com/weirflow/weir"

// ID names the edge in snapshots.
func (e *Edge) ID() weir.EdgeID {
	return weir.EdgeID{From: e.FromOperator, To: e.ToOperator, Input: int32(e.Input)}
}
