package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/taskmanager/lifecycle"
)

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		task := lifecycle.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			ev, ok := map[string]lifecycle.Event{
				"deploy": lifecycle.Deploy{}, "restored": lifecycle.Restored{}, "finish": lifecycle.Finish{},
				"cancel": lifecycle.Cancel{}, "exited": lifecycle.Exited{},
			}[d.Cmd]
			if d.Cmd == "fail" {
				ev, ok = lifecycle.Fail{Failure: &weir.Failure{Message: d.CmdArgs[0].Key}}, true
			}
			if !ok {
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			var out strings.Builder
			for _, a := range task.Step(ev) {
				out.WriteString(a.String() + "\n")
			}
			return out.String() + "(" + task.State().String() + ")\n"
		})
	})
}

// TestInvariants steps random lives. The goroutine speaks only between Start and
// Exited; commands come at any time.
func TestInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		task := lifecycle.New()
		var starts, finals, releases int
		alive, exited, interrupted, canceled := false, false, false, false
		step := func(ev lifecycle.Event) {
			before := task.State()
			acts := task.Step(ev)
			if len(acts) == 0 {
				rt.Fatalf("%s while %s: no answer", ev, before)
			}
			for _, a := range acts {
				switch a := a.(type) {
				case lifecycle.Start:
					starts++
					alive = true
				case lifecycle.Interrupt:
					interrupted = true
					if !alive {
						rt.Fatalf("%s while %s: nobody to interrupt", ev, before)
					}
				case lifecycle.Report:
					if finals > 0 {
						rt.Fatalf("%s: reported %s after the final state", ev, a.State)
					}
					if a.State.Final() {
						finals++
						if a.State == lifecycle.Failed && a.Failure == nil {
							rt.Fatal("failed without a failure")
						}
						if a.State == lifecycle.Finished && (interrupted || canceled) {
							rt.Fatal("finished after it was told to stop")
						}
					}
				case lifecycle.Release:
					releases++
					if alive || finals != 1 {
						rt.Fatalf("%s: released while alive=%v, %d final reports", ev, alive, finals)
					}
				case lifecycle.Note:
				}
			}
			if starts > 1 || releases > 1 || finals != releases {
				rt.Fatalf("%d starts, %d releases, %d final states", starts, releases, finals)
			}
		}
		speak := func(ev lifecycle.Event) func(*rapid.T) {
			return func(*rapid.T) {
				if alive {
					step(ev)
				}
			}
		}
		fail := lifecycle.Fail{Failure: &weir.Failure{Message: "x"}}
		rt.Repeat(map[string]func(*rapid.T){
			"deploy":   func(*rapid.T) { step(lifecycle.Deploy{}) },
			"cancel":   func(*rapid.T) { canceled = canceled || task.State() <= lifecycle.Finishing; step(lifecycle.Cancel{}) },
			"fail":     func(*rapid.T) { step(fail) },
			"restored": speak(lifecycle.Restored{}),
			"finish":   speak(lifecycle.Finish{}),
			"exited": func(*rapid.T) {
				if alive {
					alive, exited = false, true
					step(lifecycle.Exited{})
				}
			},
		})
		if exited && (finals != 1 || !task.State().Final()) {
			rt.Fatalf("ended in %s with %d final reports", task.State(), finals)
		}
	})
}
