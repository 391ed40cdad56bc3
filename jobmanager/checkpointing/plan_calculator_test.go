package checkpointing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/weirflow/weir"
)

// TestPlan runs the cases of plan calculation. The input lists vertices in
// topological order, "NAME PARALLELISM [all:NAME | pointwise:NAME]…", then what is
// not running, "STATUS SUBTASK…".
func TestPlan(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/plan", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			o := Defaults()
			o.AfterTasksFinish = !td.HasArg("not-after-tasks-finish")
			view, names := parseGraph(t, td.Input)
			plan, err := CalculatePlan(view, o)
			if err != nil {
				return err.Error()
			}
			list := func(ids []weir.AttemptID) string {
				var text []string
				for _, id := range ids {
					text = append(text, fmt.Sprintf("%s%d", names[id.Vertex], id.Subtask))
				}
				return strings.Join(text, " ")
			}
			var fully []string
			for _, v := range plan.FullyFinished {
				fully = append(fully, names[v])
			}
			return fmt.Sprintf("trigger: %s\nwait: %s\nfinished: %s\nfully finished: %s",
				list(plan.Trigger), list(plan.Wait), list(plan.Finished), strings.Join(fully, " "))
		})
	})
}

// parseGraph reads a view; all subtasks run unless said otherwise.
func parseGraph(t *testing.T, text string) (view []VertexView, names []string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		words := strings.Fields(line)
		if status := slices.Index(taskStatusNames[:], words[0]); status >= 0 {
			for _, w := range words[1:] {
				v := slices.IndexFunc(names, func(n string) bool { return strings.TrimRight(w, "0123456789") == n })
				i, err := strconv.Atoi(strings.TrimLeft(w, "abcdefghijklmnopqrstuvwxyz"))
				if err != nil || v < 0 {
					t.Fatalf("subtask %q: %v", w, err)
				}
				view[v].Subtasks[i].Status = TaskStatus(status)
			}
			continue
		}
		n, err := strconv.Atoi(words[1])
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		v := vertexView(testJob, int32(len(view)), n)
		for _, w := range words[2:] {
			kind, from, _ := strings.Cut(w, ":")
			v.Inputs = append(v.Inputs, InputView{From: slices.Index(names, from), Pointwise: kind == "pointwise"})
		}
		view, names = append(view, v), append(names, words[0])
	}
	return view, names
}

var testJob = weir.JobID{0xab, 0xcd}

func vertexView(job weir.JobID, vertex int32, parallelism int) VertexView {
	v := VertexView{Subtasks: make([]SubtaskView, parallelism)}
	for i := range v.Subtasks {
		v.Subtasks[i] = SubtaskView{Attempt: weir.AttemptID{Job: job, Vertex: vertex, Subtask: int32(i), Epoch: 5, N: 1}, Status: TaskRunning}
	}
	return v
}

// TestPlanReachesEveryRunningTask holds the plan against what it is for: barriers
// that start at the triggered tasks reach exactly those that are waited for, and no
// task is triggered that a barrier reaches.
func TestPlanReachesEveryRunningTask(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "vertices")
		view := make([]VertexView, n)
		for v := range view {
			view[v] = vertexView(testJob, int32(v), rapid.IntRange(1, 4).Draw(t, "parallelism"))
			for from := range v {
				if rapid.Bool().Draw(t, "edge") {
					view[v].Inputs = append(view[v].Inputs, InputView{From: from, Pointwise: rapid.Bool().Draw(t, "pointwise")})
				}
			}
			for i := range view[v].Subtasks {
				if rapid.IntRange(0, 2).Draw(t, "finished") == 0 {
					view[v].Subtasks[i].Status = TaskFinished
				}
			}
		}
		plan, err := CalculatePlan(view, Defaults())
		if err != nil {
			for _, v := range view {
				for _, s := range v.Subtasks {
					if s.Status == TaskRunning {
						t.Fatalf("%v, though %s runs", err, s.Attempt)
					}
				}
			}
			return
		}
		for v := range view {
			for i, s := range view[v].Subtasks {
				reached := false
				for _, in := range view[v].Inputs {
					producers := view[in.From].Subtasks
					for p := range producers {
						reached = reached || connects(in, len(producers), len(view[v].Subtasks), p, i) && producers[p].Status == TaskRunning
					}
				}
				triggered, waited := slices.Contains(plan.Trigger, s.Attempt), slices.Contains(plan.Wait, s.Attempt)
				runs := s.Status == TaskRunning
				if triggered != (runs && !reached) || waited != runs || slices.Contains(plan.Finished, s.Attempt) == runs {
					t.Fatalf("%s: runs %t, reached %t, triggered %t, waited for %t", s.Attempt, runs, reached, triggered, waited)
				}
			}
		}
	})
}

// connects says whether producer p of np feeds consumer c of nc: the definition in
// InputView, written from the producers' side.
func connects(in InputView, np, nc, p, c int) bool {
	if !in.Pointwise {
		return true
	}
	if np < nc {
		return c*np/nc == p
	}
	return c*np/nc <= p && p < (c+1)*np/nc
}
