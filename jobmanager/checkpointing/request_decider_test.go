package checkpointing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/weirflow/weir"
)

// TestDecider runs the cases of the request decider. Times are milliseconds of a
// relative clock.
//
//	new concurrent=N pause=MS limit=N
//	submit NAME [periodic] [forced] [savepoint] [ts=MS] SITUATION
//	next SITUATION, abort
//
// SITUATION: now=MS last=MS pending=N cleaning=N triggering; now is 10000 if not given.
func TestDecider(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/decider", func(t *testing.T, path string) {
		var d *CheckpointRequestDecider
		names := map[RequestID]string{}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			var decision Decision
			switch td.Cmd {
			case "new":
				o := Defaults()
				o.MaxConcurrent = arg(t, td, "concurrent", 1)
				o.MinPause = time.Duration(arg(t, td, "pause", 1000)) * time.Millisecond
				d = NewCheckpointRequestDecider(o)
				d.limit = arg(t, td, "limit", 3)
				return "ok"
			case "submit":
				r := CheckpointRequest{Request: RequestID(len(names) + 1), Periodic: td.HasArg("periodic"), Forced: td.HasArg("forced"), At: millis(arg(t, td, "ts", 0))}
				if td.HasArg("savepoint") {
					r.Kind = weir.Savepoint
				}
				names[r.Request] = td.CmdArgs[0].Key
				decision = d.Submit(r, situation(t, td))
			case "next":
				decision = d.Next(situation(t, td))
			case "abort":
				decision.Refused = d.AbortAll(weir.CheckpointCoordinatorSuspend)
			default:
				td.Fatalf(t, "unknown command %s", td.Cmd)
			}
			return renderDecision(decision, d, names)
		})
	})
}

func situation(t *testing.T, td *datadriven.TestData) Situation {
	return Situation{
		Now: millis(arg(t, td, "now", 10000)), LastCompletion: millis(arg(t, td, "last", 0)),
		Pending: arg(t, td, "pending", 0), Cleaning: arg(t, td, "cleaning", 0), Triggering: td.HasArg("triggering"),
	}
}

func renderDecision(decision Decision, d *CheckpointRequestDecider, names map[RequestID]string) string {
	var b strings.Builder
	if decision.Start != nil {
		fmt.Fprintf(&b, "start %s\n", names[decision.Start.Request])
	}
	for _, r := range decision.Refused {
		fmt.Fprintf(&b, "%s fails: %s\n", names[r.Request], r.Reason)
	}
	if decision.Reschedule > 0 {
		fmt.Fprintf(&b, "reschedule in %s\n", decision.Reschedule)
	}
	b.WriteString("queue:")
	for _, r := range d.queue {
		b.WriteString(" " + names[r.Request])
	}
	return b.String()
}

func millis(n int) time.Time { return time.UnixMilli(0).Add(time.Duration(n) * time.Millisecond) }

func arg(t *testing.T, td *datadriven.TestData, key string, otherwise int) int {
	t.Helper()
	n := otherwise
	td.MaybeScanArgs(t, key, &n)
	return n
}

func TestQueueIsOrderedAndBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := Defaults()
		o.MaxConcurrent = rapid.IntRange(1, 2).Draw(t, "concurrent")
		o.MinPause = time.Duration(rapid.IntRange(0, 2).Draw(t, "pause")) * time.Second
		d := NewCheckpointRequestDecider(o)
		d.limit = rapid.IntRange(1, 4).Draw(t, "limit")
		in, out := 0, 0
		situation := func(t *rapid.T) Situation {
			return Situation{
				Now: millis(10_000), LastCompletion: millis(rapid.SampledFrom([]int{0, 8000, 9500}).Draw(t, "last")),
				Pending: rapid.IntRange(0, 2).Draw(t, "pending"), Cleaning: rapid.IntRange(0, 3).Draw(t, "cleaning"),
				Triggering: rapid.Bool().Draw(t, "triggering"),
			}
		}
		take := func(t *rapid.T, decision Decision, s Situation) {
			out += len(decision.Refused)
			if decision.Start == nil {
				return
			}
			out++
			r := *decision.Start
			if s.Triggering || s.Cleaning > o.MaxConcurrent || s.Pending >= o.MaxConcurrent && !r.Forced {
				t.Fatalf("started %+v in %+v", r, s)
			}
			for _, waits := range d.queue {
				if compareRequests(waits, r) < 0 {
					t.Fatalf("started %+v before %+v", r, waits)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				s := situation(t)
				in++
				take(t, d.Submit(CheckpointRequest{
					Kind:     rapid.SampledFrom([]weir.SnapshotKind{weir.Checkpoint, weir.Savepoint}).Draw(t, "kind"),
					Forced:   rapid.Bool().Draw(t, "forced"),
					Periodic: rapid.Bool().Draw(t, "periodic"),
					At:       millis(rapid.IntRange(0, 3).Draw(t, "at")),
				}, s), s)
			},
			"next": func(t *rapid.T) {
				s := situation(t)
				take(t, d.Next(s), s)
			},
			"abort": func(t *rapid.T) { out += len(d.AbortAll(weir.CheckpointCoordinatorSuspend)) },
			"": func(t *rapid.T) {
				if in != out+d.Len() || d.Len() > d.limit || !slices.IsSortedFunc(d.queue, compareRequests) {
					t.Fatalf("%d in, %d out, queue %+v", in, out, d.queue)
				}
			},
		})
	})
}
