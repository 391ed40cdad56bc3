package checkpointing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(3, 4)) }

// TestCoordinatorKeepsItsPromises leads a coordinator through a long life in which
// anything happens in any order, late, twice or never.
func TestCoordinatorKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := Defaults()
		o.Interval = 2 * time.Second
		o.MinPause = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "pause")
		o.Timeout = rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "timeout")
		o.MaxConcurrent = rapid.IntRange(1, 3).Draw(t, "concurrent")
		o.TolerableFailures = rapid.IntRange(-1, 2).Draw(t, "tolerable")
		o.Retained = rapid.IntRange(1, 3).Draw(t, "retained")
		view := []VertexView{vertexView(testJob, 0, 2), vertexView(testJob, 1, 2)}
		view[1].Inputs = []InputView{{From: 0}}
		l := newLedger(t, o, rapid.IntRange(0, 2).Draw(t, "operators"), view)
		l.fail = func(string, weir.CheckpointID) bool { return rapid.IntRange(0, 9).Draw(t, "fails") == 0 }
		if rapid.Bool().Draw(t, "hook") {
			l.c.config.Hooks = []string{"h"}
		}
		l.step(Restored{})
		l.step(TasksRunning{})
		messages := 0
		attempt := func(t *rapid.T) weir.AttemptID {
			a := view[rapid.IntRange(0, 1).Draw(t, "vertex")].Subtasks[rapid.IntRange(0, 1).Draw(t, "subtask")].Attempt
			if rapid.IntRange(0, 9).Draw(t, "old") == 0 {
				a.N += 100
			}
			return a
		}
		recent := func(t *rapid.T) weir.CheckpointID {
			return max(1, l.id-weir.CheckpointID(rapid.IntRange(-1, 3).Draw(t, "ago")))
		}
		restart := func() {
			for v := range view {
				for i := range view[v].Subtasks {
					view[v].Subtasks[i].Attempt.N++
				}
			}
			l.step(TasksRunning{})
		}
		t.Repeat(map[string]func(*rapid.T){
			"tick": func(t *rapid.T) { l.elapse(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond) },
			"answer": func(t *rapid.T) {
				if len(l.due) > 0 {
					l.answer(rapid.IntRange(0, len(l.due)-1).Draw(t, "which"))
				}
			},
			"answers": func(*rapid.T) {
				for len(l.due) > 0 {
					l.answer(0)
				}
			},
			"ack": func(t *rapid.T) {
				messages++
				a, id := attempt(t), recent(t)
				l.step(Acknowledged{Attempt: a, Checkpoint: id, State: l.withChannels(stateIn(fmt.Sprintf("%s/%d", l.dir(id), messages)), id, a)})
			},
			"acks": func(t *rapid.T) {
				for id := recent(t); id <= l.id; id++ {
					for v := range view {
						for _, s := range view[v].Subtasks {
							messages++
							l.step(Acknowledged{Attempt: s.Attempt, Checkpoint: id, State: l.withChannels(stateIn(fmt.Sprintf("%s/%d", l.dir(id), messages)), id, s.Attempt)})
						}
					}
				}
			},
			"request": func(t *rapid.T) {
				ev := Requested{Request: 1, Kind: weir.SnapshotKind(rapid.IntRange(0, int(weir.TerminateSavepoint)).Draw(t, "kind"))}
				if ev.Kind.IsSavepoint() {
					ev.Location = "sp"
				}
				l.step(ev)
			},
			"end of data": func(*rapid.T) { l.step(EndOfData{}) },
			"interval": func(t *rapid.T) {
				l.step(IntervalChanged{rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second}).Draw(t, "interval")})
			},
			"rare": func(t *rapid.T) {
				switch rapid.IntRange(0, 6).Draw(t, "which") {
				case 0:
					l.step(Declined{attempt(t), recent(t), weir.CheckpointDeclined, ""})
				case 1:
					l.step(AttemptFailed{attempt(t)})
					l.step(JobFailover{})
					restart()
				case 2:
					l.step(TasksStopped{})
					restart()
				case 3:
					l.step(TriggerFailed{recent(t), attempt(t), ""})
				case 4:
					l.step(AttemptFinished{attempt(t)})
				case 6:
					l.step(HookFailed{recent(t), "h", ""})
				case 5:
					l.step(CoordinatorFailed{recent(t), operatorNamed(0), ""})
				}
			},
		})
		l.settle()
	})
}

// elapse moves the clock; timers that are due fire, at its end.
func (l *ledger) elapse(d time.Duration) {
	l.now = l.now.Add(d)
	for range 3 {
		for _, key := range l.dueTimers() {
			if _, armed := l.timers[key]; armed {
				delete(l.timers, key)
				l.step(TimerFired{key})
			}
		}
	}
}

func (l *ledger) dueTimers() []TimerKey {
	var due []TimerKey
	for n := range l.c.scheduler.n + 1 {
		due = append(due, TimerKey{Kind: PeriodicTimer, N: n})
	}
	for id := range l.id + 1 {
		due = append(due, TimerKey{Kind: ExpiryTimer, Checkpoint: id})
	}
	kept := due[:0]
	for _, key := range due {
		if at, armed := l.timers[key]; armed && !at.After(l.now) {
			kept = append(kept, key)
		}
	}
	return kept
}

func TestSixteenExpiredAreRemembered(t *testing.T) {
	t.Parallel()
	t.Run("O-PND-03_expired_ids", func(t *testing.T) {
		t.Parallel()
		o := Defaults()
		o.Timeout = 600 * time.Second
		l := newLedger(t, o, 0, []VertexView{vertexView(testJob, 0, 1)})
		l.step(TasksRunning{})
		l.id = 3
		expire := func() {
			l.step(Requested{Request: 1})
			for len(l.due) > 0 {
				l.answer(0)
			}
			l.elapse(600 * time.Second)
		}
		late := func() string {
			out := l.c.Step(l.now, Acknowledged{Attempt: l.view[0].Subtasks[0].Attempt, Checkpoint: 4, State: stateIn("chk-4/late")})
			if _, ok := out[1].(DiscardState); !ok || len(out) != 2 {
				t.Fatalf("%v", out)
			}
			return out[0].(Note).Text[:7]
		}
		expire()
		if l.ended[4] != Failed || late() != "expired" {
			t.Fatal("4 is not known as expired")
		}
		for range 15 {
			expire()
		}
		if late() != "expired" {
			t.Fatal("4 is forgotten too early")
		}
		expire()
		if late() != "unknown" {
			t.Fatal("4 is still known after 16 further ones")
		}
	})
}
