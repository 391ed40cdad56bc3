package execgraph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
)

var testJob = weir.JobID{1}

func plan(parallelism ...int) *jobgraph.JobGraph {
	g := &jobgraph.JobGraph{}
	for i, p := range parallelism {
		g.Vertices = append(g.Vertices, jobgraph.Vertex{Index: i, Parallelism: p, MaxParallelism: 128})
	}
	return g
}

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var g *Graph
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				var parallelism []int
				for _, a := range d.CmdArgs[0].Vals {
					var p int
					fmt.Sscan(a, &p)
					parallelism = append(parallelism, p)
				}
				g = New(testJob, 5, plan(parallelism...))
				return "ok"
			case "show":
				var b strings.Builder
				for x := range g.Executions() {
					fmt.Fprintf(&b, "%s %s at %s\n", short(x.ID), x.State, x.At)
				}
				return b.String()
			}
			return run(g.Step(event(t, d)))
		})
	})
}

func run(acts []Action) string {
	if len(acts) == 0 {
		return "nothing"
	}
	var b strings.Builder
	for _, a := range acts {
		fmt.Fprintln(&b, a)
	}
	return b.String()
}

func event(t *testing.T, d *datadriven.TestData) Event {
	var vertex, sub, tm, incarnation, slot, epoch, n int
	epoch, incarnation, n = 5, 1, 1
	var state, why string
	d.MaybeScanArgs(t, "v", &vertex)
	d.MaybeScanArgs(t, "i", &sub)
	d.MaybeScanArgs(t, "tm", &tm)
	d.MaybeScanArgs(t, "inc", &incarnation)
	d.MaybeScanArgs(t, "slot", &slot)
	d.MaybeScanArgs(t, "epoch", &epoch)
	d.MaybeScanArgs(t, "n", &n)
	d.MaybeScanArgs(t, "state", &state)
	d.MaybeScanArgs(t, "why", &why)
	id := weir.SubtaskID{Vertex: int32(vertex), Subtask: int32(sub)}
	var failure *weir.Failure
	if why != "" {
		failure = &weir.Failure{Message: why}
	}
	at := Location{TaskManager: weir.TaskManagerID{byte(tm)}, Incarnation: weir.Incarnation(incarnation), Slot: slot}
	switch d.Cmd {
	case "create":
		return Create{id}
	case "assign":
		return Assign{id, at}
	case "deploy":
		return Deploy{id}
	case "cancel":
		return Cancel{id}
	case "lose":
		return Lose{at.TaskManager, at.Incarnation, &weir.Failure{Message: "task manager lost"}}
	case "report":
		return Report{
			Attempt: weir.AttemptID{Job: testJob, Vertex: id.Vertex, Subtask: id.Subtask, Epoch: weir.LeaderEpoch(epoch), N: int32(n)},
			State:   stateNamed(t, state), Failure: failure,
		}
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return nil
}

func stateNamed(t *testing.T, name string) State {
	for i, n := range stateNames {
		if n == name {
			return State(i)
		}
	}
	t.Fatalf("unknown state %q", name)
	return 0
}

// TestLives drives a graph with any events in any order and checks it against the
// rules of states: forward only, final for ever, numbers grow, counts add up.
func TestLives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := New(testJob, 5, plan(2, 3))
		last := map[weir.SubtaskID]Execution{}
		pick := func() weir.SubtaskID {
			v := rapid.IntRange(0, 1).Draw(t, "v")
			return weir.SubtaskID{Vertex: int32(v), Subtask: int32(rapid.IntRange(0, 1+v).Draw(t, "i"))}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			acts := g.Step(anyEvent(t, pick()))
			checkChanges(t, acts)
			total := 0
			for s := Created; s <= Failed; s++ {
				total += g.Count(s)
			}
			n := 0
			for x := range g.Executions() {
				n++
				old := last[x.ID.SubtaskID()]
				if old.ID.N > x.ID.N || old.ID.N < x.ID.N-1 || old.ID == x.ID && old.State > x.State {
					t.Fatalf("%v %s became %v %s", old.ID, old.State, x.ID, x.State)
				}
				if old.ID.N == x.ID.N-1 && old.ID.N > 0 && !old.State.Final() {
					t.Fatalf("%v replaced %v, which is %s", x.ID, old.ID, old.State)
				}
				if (x.State == Failed) != (x.Failure != nil) {
					t.Fatalf("%v is %s with failure %v", x.ID, x.State, x.Failure)
				}
				last[x.ID.SubtaskID()] = x
			}
			if n != total {
				t.Fatalf("counts add up to %d, want %d", total, n)
			}
		}
	})
}

func anyEvent(t *rapid.T, id weir.SubtaskID) Event {
	at := Location{TaskManager: weir.TaskManagerID{byte(rapid.IntRange(1, 2).Draw(t, "tm"))}, Incarnation: 1}
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return Create{id}
	case 1:
		return Assign{id, at}
	case 2:
		return Deploy{id}
	case 3:
		return Cancel{id}
	case 4:
		return Lose{at.TaskManager, 1, &weir.Failure{Message: "lost"}}
	}
	return Report{
		Attempt: weir.AttemptID{Job: testJob, Vertex: id.Vertex, Subtask: id.Subtask, Epoch: 5, N: int32(rapid.IntRange(1, 3).Draw(t, "n"))},
		State:   State(rapid.IntRange(int(Initializing), int(Failed)).Draw(t, "state")),
	}
}

func checkChanges(t *rapid.T, acts []Action) {
	for _, a := range acts {
		if c, ok := a.(Changed); ok && (c.From.Final() || c.Execution.State <= c.From) {
			t.Fatalf("illegal change: %s", c)
		}
	}
}
