package checkpointing

import "github.com/weirflow/weir"

// attemptIndex finds an attempt in a list that holds at most one of each subtask. It is
// two array lookups, so that the cost of an acknowledgement does not grow with the job.
type attemptIndex struct {
	attempts []weir.AttemptID
	at       [][]int32 // by vertex and subtask: 1 + the position, 0 for none
}

// indexAttempts indexes a list in order of vertex and subtask. It keeps the list.
func indexAttempts(attempts []weir.AttemptID) attemptIndex {
	x := attemptIndex{attempts: attempts}
	if n := len(attempts); n > 0 {
		x.at = make([][]int32, attempts[n-1].Vertex+1)
	}
	for first := 0; first < len(attempts); {
		v, end := attempts[first].Vertex, first
		for end < len(attempts) && attempts[end].Vertex == v {
			end++
		}
		row := make([]int32, attempts[end-1].Subtask+1)
		for i := first; i < end; i++ {
			row[attempts[i].Subtask] = int32(i + 1)
		}
		x.at[v], first = row, end
	}
	return x
}

// find returns the attempt's position in the list. The attempt may be anybody's.
func (x attemptIndex) find(a weir.AttemptID) (i int, ok bool) {
	if a.Vertex < 0 || int(a.Vertex) >= len(x.at) || a.Subtask < 0 || int(a.Subtask) >= len(x.at[a.Vertex]) {
		return 0, false
	}
	i = int(x.at[a.Vertex][a.Subtask]) - 1
	return i, i >= 0 && x.attempts[i] == a
}
