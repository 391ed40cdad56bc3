package checkpointing

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// large is a coordinator of n subtasks, after its first checkpoint was triggered.
func large(tb testing.TB, n int) (l *ledger, attempts []weir.AttemptID) {
	view := []VertexView{vertexView(testJob, 0, n/2), vertexView(testJob, 1, n-n/2)}
	view[1].Inputs = []InputView{{From: 0}}
	l = newLedger(tb, Defaults(), 0, view)
	l.step(TasksRunning{})
	for _, v := range view {
		for _, s := range v.Subtasks {
			attempts = append(attempts, s.Attempt)
		}
	}
	return l, attempts
}

// checkpoint takes a whole checkpoint through l.
func checkpoint(l *ledger, attempts []weir.AttemptID) {
	l.c.Step(l.now, Requested{Request: 1})
	l.c.Step(l.now, PlanFor(l.c.lastTrigger, l.view, l.c.config.Options))
	id := l.c.lastID + 1
	l.c.Step(l.now, IDTaken{l.c.lastTrigger, id})
	for _, a := range attempts {
		l.c.Step(l.now, Acknowledged{Attempt: a, Checkpoint: id})
	}
	l.c.Step(l.now, MetadataWritten{id, "m", 1})
	for _, a := range l.c.Step(l.now, LinkAdded{id, permit(id)}) {
		if d, ok := a.(DeleteCheckpoint); ok {
			l.c.Step(l.now, CleanupEnded{d.Cleanup})
		}
	}
}

func TestHistoryOfALargeJobIsBounded(t *testing.T) {
	t.Parallel()
	l, attempts := large(t, 10_000)
	for range maxRecentCheckpoints + 3 {
		l.now = l.now.Add(time.Second)
		checkpoint(l, attempts)
	}
	s := l.c.Statistics(l.now)
	subtasks := 0
	for i, ch := range s.Recent {
		if i > 0 && ch.ID != s.Recent[i-1].ID-1 {
			t.Errorf("checkpoint %d after %d", ch.ID, s.Recent[i-1].ID)
		}
		subtasks += len(ch.Subtasks)
	}
	if len(s.Recent) != maxRecentCheckpoints || s.Completed != maxRecentCheckpoints+3 || subtasks > maxRecentSubtasks || len(s.Recent[0].Subtasks) != 10_000 {
		t.Errorf("%d checkpoints, %d completed, %d subtasks, %d of the newest", len(s.Recent), s.Completed, subtasks, len(s.Recent[0].Subtasks))
	}
	if latest, ok := l.c.Latest(); !ok || latest.ID != maxRecentCheckpoints+3 || len(l.c.Retained()) != 2 {
		t.Errorf("latest %v, retained %d", latest, len(l.c.Retained()))
	}
}

// BenchmarkCheckpoint is a whole checkpoint; the time per subtask must not grow with
// their number.
func BenchmarkCheckpoint(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("subtasks=%d", n), func(b *testing.B) {
			l, attempts := large(b, n)
			b.ReportAllocs()
			for b.Loop() {
				checkpoint(l, attempts)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/subtask")
		})
	}
}
