package checkpointing

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
)

func TestAttemptsAreFoundWhereTheyAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []weir.AttemptID
		model := map[weir.AttemptID]int{}
		for v := range int32(4) {
			for s := range int32(4) {
				if rapid.Bool().Draw(t, "there") {
					a := weir.AttemptID{Job: testJob, Vertex: v, Subtask: s, Epoch: 5, N: 1}
					model[a] = len(list)
					list = append(list, a)
				}
			}
		}
		x := indexAttempts(list)
		for v := int32(-1); v < 6; v++ {
			for s := int32(-1); s < 6; s++ {
				for n := range int32(3) {
					a := weir.AttemptID{Job: testJob, Vertex: v, Subtask: s, Epoch: 5, N: n}
					want, known := model[a]
					if i, ok := x.find(a); ok != known || ok && i != want {
						t.Fatalf("%s: %d, %t, want %d, %t", a, i, ok, want, known)
					}
				}
			}
		}
	})
}
