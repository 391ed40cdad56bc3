package weir

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKeyGroups(t *testing.T) {
	t.Run("O-KG-04_keyed_state_goes_to_its_owners", func(t *testing.T) {
		old := []OperatorSubtaskState{
			{Keyed: []KeyedStateHandle{{Range: KeyGroupRange{0, 4}, Handle: StateHandle{File: "H0"}}}},
			{Keyed: []KeyedStateHandle{{Range: KeyGroupRange{5, 9}, Handle: StateHandle{File: "H1"}}}},
		}
		want := []string{"H0[0,3]", "H0[4,4] H1[5,6]", "H1[7,9]"}
		for i, o := range Redistribute(old, 10, 3) {
			if got := keyedText(o); got != want[i] {
				t.Errorf("new subtask %d got %s, want %s", i, got, want[i])
			}
		}
	})
}

func TestOperatorState(t *testing.T) {
	h0, h1 := []int{0, 10, 20}, []int{0, 7}
	cases := []struct {
		name  string
		lists [][][]int
		n     int
		want  string
	}{
		{"O-OPS-01_split_to_three", [][][]int{{h0, h1}}, 3, "[[[0 10] [20 0] [7]]]"},
		{"O-OPS-01_split_to_one", [][][]int{{h0, h1}}, 1, "[[[0 10 20 0 7]]]"},
		{"O-OPS-02_remainders_rotate", [][][]int{{{0, 1, 2, 3, 4}}, {{50, 51, 52}}}, 4, "[[[0 1] [2] [3] [4]] [[] [50] [51] [52]]]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(DealElements(c.lists, c.n)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("O-OPS-01_unchanged_parallelism_is_left_alone", func(t *testing.T) {
		old := []OperatorSubtaskState{{Elements: elements("a", 3)}, {Elements: elements("b", 2)}}
		got := Redistribute(old, 128, 2)
		if len(got[0].Elements) != 3 || len(got[1].Elements) != 2 {
			t.Errorf("elements moved: %v", got)
		}
	})
}

// TestRedistributeLosesAndDoublesNothing checks, for chains of changes of
// parallelism, that each key group is read by its owner exactly once, from the
// handle that holds it, and that the elements stay the same list.
func TestRedistributeLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		maxParallelism := rapid.IntRange(1, 200).Draw(t, "max")
		p := rapid.IntRange(1, maxParallelism).Draw(t, "p")
		state := make([]OperatorSubtaskState, p)
		var all []string
		origin := make([]string, maxParallelism)
		for i := range state {
			r := KeyGroupRangeOf(maxParallelism, p, i)
			file := fmt.Sprintf("keyed-%d", i)
			state[i] = OperatorSubtaskState{
				Operator: OperatorIDOf("op"), Name: "op",
				Keyed:    []KeyedStateHandle{{Range: r, Handle: StateHandle{File: file}}},
				Elements: elements(fmt.Sprint(i), rapid.IntRange(0, 5).Draw(t, "n")),
			}
			for g := r.First; g <= r.Last; g++ {
				origin[g] = file
			}
			all = append(all, files(state[i].Elements)...)
		}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			p = rapid.IntRange(1, maxParallelism).Draw(t, "p")
			state = Redistribute(state, maxParallelism, p)
			checkState(t, state, maxParallelism, p, origin, all)
		}
	})
}

func checkState(t *rapid.T, state []OperatorSubtaskState, maxParallelism, p int, origin, all []string) {
	if len(state) != p {
		t.Fatalf("%d subtasks, want %d", len(state), p)
	}
	seen := make([]int, maxParallelism)
	var got []string
	least, most := len(all), 0
	for i, o := range state {
		if o.Operator != OperatorIDOf("op") {
			t.Fatalf("subtask %d lost its operator", i)
		}
		for _, h := range o.Keyed {
			for g := h.Range.First; g <= h.Range.Last; g++ {
				seen[g]++
				if KeyGroupOwner(KeyGroup(g), maxParallelism, p) != i || origin[g] != h.Handle.File {
					t.Fatalf("key group %d read by %d of %d from %s", g, i, p, h.Handle.File)
				}
			}
		}
		got = append(got, files(o.Elements)...)
		least, most = min(least, len(o.Elements)), max(most, len(o.Elements))
	}
	if g := slices.IndexFunc(seen, func(n int) bool { return n != 1 }); g >= 0 {
		t.Fatalf("key group %d is read %d times", g, seen[g])
	}
	if !slices.Equal(got, all) {
		t.Fatalf("elements %v, want %v", got, all)
	}
}

func elements(prefix string, n int) []StateHandle {
	var list []StateHandle
	for i := range n {
		list = append(list, StateHandle{File: fmt.Sprintf("%s-%d", prefix, i)})
	}
	return list
}

func files(list []StateHandle) []string {
	var names []string
	for _, h := range list {
		names = append(names, h.File)
	}
	return names
}

func keyedText(o OperatorSubtaskState) string {
	var parts []string
	for _, h := range o.Keyed {
		parts = append(parts, h.Handle.File+h.Range.String())
	}
	return strings.Join(parts, " ")
}
