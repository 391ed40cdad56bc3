package checkpointing

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestQuantilesAreNearestRanks(t *testing.T) {
	t.Parallel()
	numbers := func(n int) (v []float64) {
		for i := range n {
			v = append(v, float64(i+1))
		}
		rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { v[i], v[j] = v[j], v[i] })
		return v
	}
	for _, c := range []struct {
		n    int
		want Quantiles
	}{
		{0, Quantiles{}},
		{1, Quantiles{Count: 1, Min: 1, Max: 1, Average: 1, P50: 1, P90: 1, P99: 1, P999: 1}},
		{2, Quantiles{Count: 2, Min: 1, Max: 2, Average: 1.5, P50: 1, P90: 2, P99: 2, P999: 2}},
		{10, Quantiles{Count: 10, Min: 1, Max: 10, Average: 5.5, P50: 5, P90: 9, P99: 10, P999: 10}},
		{100, Quantiles{Count: 100, Min: 1, Max: 100, Average: 50.5, P50: 50, P90: 90, P99: 99, P999: 100}},
	} {
		if got := quantiles(numbers(c.n)); got != c.want {
			t.Errorf("of 1 to %d: %+v, want %+v", c.n, got, c.want)
		}
	}
	// A quantile is a value that at least so many do not exceed, and no smaller one is.
	r := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		values := make([]float64, 1+r.IntN(100))
		for i := range values {
			values[i] = float64(r.IntN(20))
		}
		got := quantiles(slices.Clone(values))
		for q, x := range map[float64]float64{0.5: got.P50, 0.9: got.P90, 0.99: got.P99, 0.999: got.P999} {
			atMost, below := 0, 0
			for _, v := range values {
				if v <= x {
					atMost++
				}
				if v < x {
					below++
				}
			}
			if n := float64(len(values)); float64(atMost) < q*n-1e-9 || float64(below) >= q*n {
				t.Fatalf("quantile %g of %v is %g", q, values, x)
			}
		}
	}
}

func TestSummaryIsOverCompletedOnes(t *testing.T) {
	t.Parallel()
	task := func(vertex int32, delay, async time.Duration, bytes int64) SubtaskStatistics {
		return SubtaskStatistics{
			Attempt: weir.AttemptID{Vertex: vertex}, Acknowledged: delay + async,
			Metrics: weir.CheckpointMetrics{StartDelay: delay, AsyncDuration: async, AlignedBytes: bytes, StateBytes: bytes},
		}
	}
	h := &history{}
	h.add(CheckpointStatistics{ID: 1, Status: Completed, Duration: time.Second, Bytes: 10, NewBytes: 5, Subtasks: []SubtaskStatistics{
		task(0, time.Millisecond, time.Second, 3), task(0, 2*time.Millisecond, 0, 4), task(1, 7*time.Millisecond, 0, 5),
		{Attempt: weir.AttemptID{Vertex: 1}},
	}})
	h.add(CheckpointStatistics{ID: 2, Status: Failed, Duration: time.Hour})
	h.add(CheckpointStatistics{ID: 3, Kind: weir.Savepoint, Status: Completed, Duration: 3 * time.Second, Bytes: 20, NewBytes: 20})
	h.add(CheckpointStatistics{Status: Failed})
	h.restored(RestoredSnapshot{Checkpoint: 9})
	s := h.statistics()
	s.Recent = append(s.Recent, h.recent...)
	got := s.Summary()
	if got.Duration.Count != 2 || got.Duration.Max != 3 || got.Duration.P50 != 1 || got.Bytes.Average != 15 || got.NewBytes.Min != 5 ||
		got.StartDelay.Max != 0.007 || got.Async.Max != 1 || got.AlignedBytes.Max != 12 {
		t.Errorf("%+v", got)
	}
	if s.Total() != 4 || s.Failed != 2 || s.LatestCompleted.ID != 1 || s.LatestSavepoint.ID != 3 || s.LatestFailed.ID != 2 || s.Restored.Checkpoint != 9 || s.Restores != 1 {
		t.Errorf("%+v", s)
	}
	v := s.Recent[0].Vertices
	if len(v) != 2 || v[0].Tasks != 2 || v[0].LastAck != 1001*time.Millisecond || v[0].StateBytes != 7 || v[1].Acknowledged != 1 || v[1].StartDelay != 7*time.Millisecond {
		t.Errorf("%+v", v)
	}
}

// What a checkpoint that expired was waiting for is known when it comes.
func TestLateAcknowledgementsAreKept(t *testing.T) {
	t.Parallel()
	l := newLedger(t, Defaults(), 0, []VertexView{vertexView(testJob, 0, 3)})
	l.step(TasksRunning{})
	l.step(Requested{Request: 1})
	l.answer(0)
	ack := func(subtask int, n int32) {
		a := l.view[0].Subtasks[subtask].Attempt
		a.N += n
		l.now = l.now.Add(time.Second)
		l.step(Acknowledged{Attempt: a, Checkpoint: 1, Metrics: weir.CheckpointMetrics{AsyncDuration: time.Hour}})
	}
	ack(1, 0)
	l.elapse(10 * time.Minute)
	for range 3 {
		ack(2, 0)
	}
	ack(1, 0) // known already
	ack(0, 7) // somebody else
	ack(0, 0)
	s := l.c.Statistics(l.now).Recent[0]
	if s.Status != Failed || s.Acknowledged != 1 || len(s.Late) != 2 || s.Late[0].Attempt.Subtask != 2 || s.Late[0].Acknowledged != 10*time.Minute+2*time.Second {
		t.Errorf("%+v", s)
	}
}

// Each step of a snapshot has its time, in order.
func TestTimelineOfASnapshot(t *testing.T) {
	t.Parallel()
	l := newLedger(t, Defaults(), 1, []VertexView{vertexView(testJob, 0, 2)})
	l.c.config.Hooks = []string{"h"}
	step := func(ev Event) []Action {
		l.now = l.now.Add(time.Second)
		return l.c.Step(l.now, ev)
	}
	step(TasksRunning{})
	step(Requested{Request: 1, Kind: weir.SuspendSavepoint, Location: "sp"})
	step(PlanFor(1, l.view, l.c.config.Options))
	step(IDTaken{1, 1})
	step(LocationInitialized{1})
	step(CoordinatorSnapshotted{1, operatorNamed(0), nil})
	step(HookCompleted{1, "h", nil})
	step(Acknowledged{Attempt: l.view[0].Subtasks[0].Attempt, Checkpoint: 1})
	step(Acknowledged{Attempt: l.view[0].Subtasks[1].Attempt, Checkpoint: 1})
	step(MetadataWritten{1, "m", 1})
	step(LinkAdded{1, permit(1)})
	steps := l.c.Statistics(l.now).Recent[0].Timeline.Steps()
	if len(steps) != 14 {
		t.Fatalf("%v", steps)
	}
	for i := 1; i < len(steps); i++ {
		if steps[i].At.Before(steps[i-1].At) {
			t.Errorf("%s at %s, after %s at %s", steps[i].Name, steps[i].At, steps[i-1].Name, steps[i-1].At)
		}
	}
	first, last := steps[0].At, steps[13].At
	if last.Sub(first) != 9*time.Second {
		t.Errorf("%s in all", last.Sub(first))
	}
}
