package jobmaster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/snapshotmeta"
)

// counting is a source, a keyed counter and a sink.
func counting() *jobgraph.Logical {
	l := chainOf(jobgraph.Hash, jobgraph.Rebalance)
	l.Operators[1].States = []jobgraph.State{
		{Name: "n", Kind: "value", Key: "string", Value: "int64"},
		{Name: "weir/processing-timers", Kind: "timers", Key: "string"},
	}
	return l
}

// counted is a snapshot of counting at this parallelism.
func counted(t *testing.T, l *jobgraph.Logical, parallelism int, change ...func(s *snapshotmeta.Snapshot)) *snapshotmeta.Snapshot {
	t.Helper()
	g := compiled(t, l, []int{parallelism, parallelism, parallelism})
	s := snapshotOf(g, l)
	op := s.Operator(weir.OperatorIDOf("op1"))
	for i := range parallelism {
		op.Subtasks = append(op.Subtasks, snapshotmeta.Subtask{Index: int32(i), State: weir.OperatorSubtaskState{
			Operator: op.ID, Name: op.Name,
			Keyed:   []weir.KeyedStateHandle{{Range: weir.KeyGroupRangeOf(op.MaxParallelism, parallelism, i), Handle: inlineState("table")}},
			Schemas: []weir.StateSchema{{State: "n", Key: "string", Value: "int64"}, {State: "weir/processing-timers", Key: "bytes", Value: "timer/1"}},
		}})
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func inlineState(content string) weir.StateHandle {
	return weir.StateHandle{Inline: []byte(content), Length: int64(len(content))}
}

// fits are the verdicts, one a line.
func fits(t *testing.T, l *jobgraph.Logical, parallelism int, s *snapshotmeta.Snapshot, o joboption.Recovery) string {
	t.Helper()
	g := compiled(t, l, []int{parallelism, parallelism, parallelism})
	AdoptMaxParallelism(g, s)
	var lines []string
	refused := false
	for _, f := range Fits(g, l.Text(), s, o) {
		lines = append(lines, fmt.Sprintf("%s, %s: %s: %s", f.Operator, f.Part, f.Verdict, f.Text))
		refused = refused || f.Verdict == FitRefused
	}
	if err := CheckRestore(g, l.Text(), s, o); (err != nil) != refused {
		t.Errorf("CheckRestore: %v, and a verdict refuses: %t", err, refused)
	}
	return strings.Join(lines, "\n")
}

func TestVerdictsPerOperatorAndState(t *testing.T) {
	t.Parallel()
	changed := func(change func(l *jobgraph.Logical)) *jobgraph.Logical {
		l := counting()
		change(l)
		return l
	}
	for name, c := range map[string]struct {
		job         *jobgraph.Logical
		parallelism int
		want        []string
	}{
		"unchanged": {counting(), 2, []string{
			"op1, operator: taken", "op1, state n: taken: schema is equal: string → int64", "op1, state weir/processing-timers: taken"}},
		"other parallelism": {counting(), 3, []string{"op1, operator: dealt: parallelism was 2, is 3"}},
		"new operator": {changed(func(l *jobgraph.Logical) {
			l.Operators = append(l.Operators, operatorReading(9, inputBy("op1", jobgraph.Rebalance)))
			l.Operators[3].Parallelism = 1
		}), 2, []string{"op9, operator: new"}},
		"new state": {changed(func(l *jobgraph.Logical) {
			l.Operators[1].States = append(l.Operators[1].States, jobgraph.State{Name: "more", Kind: "value", Key: "string", Value: "bool"})
		}), 2, []string{"op1, state more: new"}},
		"state is gone": {changed(func(l *jobgraph.Logical) { l.Operators[1].States = l.Operators[1].States[1:] }), 2,
			[]string{"op1, state n: unread"}},
		"value schema": {changed(func(l *jobgraph.Logical) { l.Operators[1].States[0].Value = "struct{1 N int64}" }), 2,
			[]string{`op1, state n: refused: state "n" of operator "op1" has values of schema int64, and in the job of struct{1 N int64}`}},
		"key schema": {changed(func(l *jobgraph.Logical) { l.Operators[1].States[0].Key = "int64" }), 2,
			[]string{`op1, state n: refused: state "n" of operator "op1" has keys of schema string, and in the job of int64`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := c.job
			parallelisms := make([]int, len(l.Operators))
			for i := range parallelisms {
				parallelisms[i] = c.parallelism
			}
			s := counted(t, counting(), 2)
			g := compiled(t, l, parallelisms)
			AdoptMaxParallelism(g, s)
			var got []string
			for _, f := range Fits(g, l.Text(), s, joboption.Recovery{}) {
				got = append(got, fmt.Sprintf("%s, %s: %s: %s", f.Operator, f.Part, f.Verdict, f.Text))
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }) {
					t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
				}
			}
		})
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	without := func() *jobgraph.Logical { // op1 is called otherwise
		l := counting()
		l.Operators[1].Name, l.Operators[2].Inputs[0].From = "other", "other"
		return l
	}
	t.Run("O-RST-04_operator_without_state_in_the_job", func(t *testing.T) {
		t.Parallel()
		s := counted(t, counting(), 2)
		if got := fits(t, without(), 2, s, joboption.Recovery{}); !strings.Contains(got, `op1, operator: refused: it has state of operator "op1"`) {
			t.Errorf("step 1:\n%s", got)
		}
		if got := fits(t, without(), 2, s, joboption.Recovery{IgnoreUnclaimed: true}); !strings.Contains(got, "op1, operator: dropped") || strings.Contains(got, "refused") {
			t.Errorf("step 2:\n%s", got)
		}
		empty := counted(t, counting(), 2, func(s *snapshotmeta.Snapshot) { s.Operator(weir.OperatorIDOf("op1")).Subtasks = nil })
		if got := fits(t, without(), 2, empty, joboption.Recovery{}); !strings.Contains(got, "op1, operator: dropped") || strings.Contains(got, "refused") {
			t.Errorf("step 3:\n%s", got)
		}
	})
	t.Run("O-RST-05_maximum_parallelism", func(t *testing.T) {
		t.Parallel()
		s := counted(t, counting(), 4)
		l := counting()
		l.Operators[1].MaxParallelism = 256
		if got := fits(t, l, 4, s, joboption.Recovery{}); !strings.Contains(got, "refused: operator \"op1\" has maximum parallelism 256, its state has 128 key groups") {
			t.Errorf("step 1:\n%s", got)
		}
		g := compiled(t, counting(), []int{100, 100, 100})
		for v := range g.Vertices {
			g.Vertices[v].MaxParallelism = 256 // as if it were derived
		}
		AdoptMaxParallelism(g, s)
		if at := vertexOf(g)[weir.OperatorIDOf("op1")]; g.Vertices[at].MaxParallelism != 128 {
			t.Errorf("step 2: the job adopts %d", g.Vertices[at].MaxParallelism)
		}
		if got := fits(t, counting(), 200, s, joboption.Recovery{}); !strings.Contains(got, "refused: operator \"op1\" has parallelism 200, its state has only 128 key groups") {
			t.Errorf("step 3:\n%s", got)
		}
	})
	t.Run("O-RST-06_without_channel_state", func(t *testing.T) {
		t.Parallel()
		l := counting()
		flying := func(id weir.CheckpointID) *snapshotmeta.Snapshot {
			return counted(t, l, 2, func(s *snapshotmeta.Snapshot) {
				s.Header.Checkpoint = id
				g := compiled(t, l, []int{2, 2, 2})
				capture(s, &g.Edges[0], weir.ConsumerSide, 0, 0)
			})
		}
		o := joboption.Recovery{WithoutChannelState: 9}
		s := flying(9)
		if got := fits(t, l, 2, s, o); !strings.Contains(got, "in flight from op0: dropped") || !strings.Contains(got, "op1, state n: taken") {
			t.Errorf("step 1:\n%s", got)
		}
		if DropInFlight(s, o); len(exchanges(s)) != 0 {
			t.Error("step 1: in-flight data is restored")
		}
		s = flying(10)
		if got := fits(t, l, 2, s, o); !strings.Contains(got, "in flight from op0: taken") {
			t.Errorf("step 2:\n%s", got)
		}
		if DropInFlight(s, o); len(exchanges(s)) != 1 {
			t.Error("step 2: in-flight data is dropped")
		}
	})
}

// TestFinishedOperatorsMustAgree (behaviour §11).
func TestFinishedOperatorsMustAgree(t *testing.T) {
	t.Parallel()
	finish := func(operator string, subtasks ...int32) func(*snapshotmeta.Snapshot) {
		return func(s *snapshotmeta.Snapshot) {
			op := s.Operator(weir.OperatorIDOf(operator))
			op.Subtasks = nil
			for _, i := range subtasks {
				op.Subtasks = append(op.Subtasks, snapshotmeta.Subtask{Index: i, Finished: true, State: weir.OperatorSubtaskState{Operator: op.ID, Name: op.Name}})
			}
		}
	}
	for name, c := range map[string]struct {
		edge    jobgraph.Partitioning // between op1 and op2
		change  []func(*snapshotmeta.Snapshot)
		refused string
	}{
		"source":                 {jobgraph.Rebalance, []func(*snapshotmeta.Snapshot){finish("op0", 0, 1)}, ""},
		"all":                    {jobgraph.Rebalance, []func(*snapshotmeta.Snapshot){finish("op0", 0, 1), finish("op1", 0, 1), finish("op2", 0, 1)}, ""},
		"before its producer":    {jobgraph.Rebalance, []func(*snapshotmeta.Snapshot){finish("op0", 0), finish("op1", 0, 1)}, `operator "op1" had finished, at least in part, and reads from "op0"`},
		"partly, all to all":     {jobgraph.Rebalance, []func(*snapshotmeta.Snapshot){finish("op0", 0, 1), finish("op1", 0, 1), finish("op2", 1)}, ""},
		"partly, after a part":   {jobgraph.Rebalance, []func(*snapshotmeta.Snapshot){finish("op0", 0, 1), finish("op1", 1), finish("op2", 1)}, `reads from "op1"`},
		"partly, pointwise":      {jobgraph.Rescale, []func(*snapshotmeta.Snapshot){finish("op0", 0, 1), finish("op1", 1), finish("op2", 1)}, ""},
		"one task, not the same": {jobgraph.Forward, []func(*snapshotmeta.Snapshot){finish("op0", 0, 1), finish("op1", 0, 1)}, `are one task in the job`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := chainOf(jobgraph.Hash, c.edge)
			s := counted(t, l, 2, func(s *snapshotmeta.Snapshot) { s.Operator(weir.OperatorIDOf("op1")).Subtasks = nil })
			for _, change := range c.change {
				change(s)
			}
			got := fits(t, l, 2, s, joboption.Recovery{})
			if c.refused == "" && strings.Contains(got, "refused") || !strings.Contains(got, c.refused) {
				t.Errorf("want %q refused, got\n%s", c.refused, got)
			}
		})
	}
}

func FuzzStatesIn(f *testing.F) {
	f.Add(counting().Text(), "op1")
	f.Add("operator \"a\" state \"x\" kind \"\\", "a")
	f.Fuzz(func(t *testing.T, text, operator string) {
		for _, s := range statesIn(text, operator) {
			if len(s.State)+len(s.Key)+len(s.Value) > 4*len(text) {
				t.Errorf("%q from %q", s, text)
			}
		}
	})
}
