package scheduling

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/execgraph"
)

func plan(parallelism ...int) *jobgraph.JobGraph {
	g := &jobgraph.JobGraph{}
	for i, p := range parallelism {
		g.Vertices = append(g.Vertices, jobgraph.Vertex{Index: i, Parallelism: p})
	}
	return g
}

func at(tm, slot int) execgraph.Location {
	return execgraph.Location{TaskManager: weir.TaskManagerID{byte(tm)}, Incarnation: 1, Slot: slot}
}

func TestSlotsAreSharedByOneSubtaskOfEachVertex(t *testing.T) {
	t.Parallel()
	s := New(plan(2, 3, 1))
	if n := len(s.Missing()); n != 3 {
		t.Fatalf("%d slots missing, want 3", n)
	}
	if _, ok := s.Place(weir.SubtaskID{Vertex: 1, Subtask: 2}); ok {
		t.Fatal("a subtask was placed before there was a slot")
	}
	if err := s.Grant([]execgraph.Location{at(1, 0)}); err == nil {
		t.Fatal("one slot was taken for three")
	}
	if err := s.Grant([]execgraph.Location{at(1, 0), at(2, 0), at(1, 1)}); err != nil {
		t.Fatal(err)
	}
	for v := range int32(2) {
		if got, ok := s.Place(weir.SubtaskID{Vertex: v, Subtask: 1}); !ok || got != at(2, 0) {
			t.Errorf("v%d[1] is at %v, want %v", v, got, at(2, 0))
		}
	}
}

func TestLostSlotsAreLookedForWhereTheyWere(t *testing.T) {
	t.Parallel()
	s := New(plan(3))
	if err := s.Grant([]execgraph.Location{at(1, 0), at(2, 0), at(1, 1)}); err != nil {
		t.Fatal(err)
	}
	if n := s.Lose(weir.TaskManagerID{1}, 7); n != 0 {
		t.Fatalf("another incarnation took %d slots with it", n)
	}
	if n := s.Lose(weir.TaskManagerID{1}, 1); n != 2 {
		t.Fatalf("%d slots lost, want 2", n)
	}
	want := s.Missing()
	if len(want) != 2 || want[0] != (weir.TaskManagerID{1}) {
		t.Fatalf("missing %v, want two of task manager 1", want)
	}
	if err := s.Grant([]execgraph.Location{at(3, 0), at(3, 1)}); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Place(weir.SubtaskID{Subtask: 1}); got != at(2, 0) {
		t.Errorf("a subtask whose slot was not lost moved to %v", got)
	}
}

// TestEverySubtaskIsPlacedOrTheShortageIsKnown grants and loses slots at random.
func TestEverySubtaskIsPlacedOrTheShortageIsKnown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := plan(rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "parallelism")...)
		s := New(p)
		slot := 0
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "lose") {
				s.Lose(weir.TaskManagerID{byte(rapid.IntRange(1, 3).Draw(t, "tm"))}, 1)
			} else {
				var slots []execgraph.Location
				for range s.Missing() {
					slot++
					slots = append(slots, at(rapid.IntRange(1, 3).Draw(t, "tm"), slot))
				}
				if err := s.Grant(slots); err != nil {
					t.Fatal(err)
				}
			}
			seen := map[execgraph.Location]int32{}
			missing := map[int32]bool{}
			for v := range p.Vertices {
				for i := range int32(p.Vertices[v].Parallelism) {
					loc, ok := s.Place(weir.SubtaskID{Vertex: int32(v), Subtask: i})
					if !ok {
						missing[i] = true
						continue
					}
					if other, used := seen[loc]; used && other != i {
						t.Fatalf("slot %v holds subtasks %d and %d", loc, other, i)
					}
					seen[loc] = i
				}
			}
			if len(missing) != len(s.Missing()) {
				t.Fatalf("%d slots are missing, %d reported", len(missing), len(s.Missing()))
			}
		}
	})
}
