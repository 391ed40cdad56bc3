package generator

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/operator"
)

func job(o Options) flow.Job {
	return flow.Define("generated", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "in", New(o, func(n int64) int64 { return n }))
		flow.To(in, "out", flow.Discard[int64](), flow.StartNewChain())
		return nil
	})
}

func emitted(t *testing.T, task *flowtest.Task) []int64 {
	t.Helper()
	c, err := codec.For[int64]()
	if err != nil {
		t.Fatal(err)
	}
	var list []int64
	for _, r := range task.Emitted() {
		var n int64
		if err := c.Decode(r.Payload, &n); err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

func TestEveryNumberIsMadeOnce(t *testing.T) {
	t.Parallel()
	var all []int64
	for subtask := range 3 {
		task := flowtest.Open(t, job(Options{Records: 100, End: true}), nil, flowtest.Options{Parallelism: 3, Subtask: subtask})
		for task.Poll(7) != operator.SourceEnd {
		}
		got := emitted(t, task)
		if !slices.IsSorted(got) || got[0] != int64(subtask) || got[1] != int64(subtask)+3 {
			t.Errorf("subtask %d: %v", subtask, got)
		}
		all = append(all, got...)
	}
	slices.Sort(all)
	for i, n := range all {
		if n != int64(i) {
			t.Fatalf("at %d: %d", i, n)
		}
	}
	if len(all) != 100 {
		t.Errorf("%d numbers", len(all))
	}
}

func TestRestoredReaderGoesOnWithTheNextNumber(t *testing.T) {
	t.Parallel()
	o := Options{Records: 50, End: true}
	var parts []*flowtest.Snapshot
	var all []int64
	for subtask := range 2 {
		task := flowtest.Open(t, job(o), nil, flowtest.Options{Parallelism: 2, Subtask: subtask})
		task.Poll(5 + subtask)
		parts = append(parts, task.Snapshot(1))
		all = append(all, emitted(t, task)...)
	}
	// One reader gets both splits.
	task := flowtest.Open(t, job(o), nil, flowtest.Options{Restore: flowtest.Merge(parts...)})
	for task.Poll(3) != operator.SourceEnd {
	}
	all = append(all, emitted(t, task)...)
	slices.Sort(all)
	for i, n := range all {
		if n != int64(i) {
			t.Fatalf("at %d: %d", i, n)
		}
	}
	if len(all) != 50 {
		t.Errorf("%d numbers", len(all))
	}
}

func TestSourceStaysAfterItsLastNumber(t *testing.T) {
	t.Parallel()
	task := flowtest.Open(t, job(Options{Records: 3}), nil, flowtest.Options{})
	if s := task.Poll(100); s != operator.SourceEmpty || len(task.Emitted()) != 3 {
		t.Errorf("status %d", s)
	}
	if s := task.Poll(100); s != operator.SourceEmpty || len(task.Emitted()) != 0 {
		t.Errorf("status %d", s)
	}
}

func TestRateIsKeptWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := flowtest.Open(t, job(Options{Rate: 2000}), nil, flowtest.Options{Parallelism: 2})
		start := time.Now()
		for time.Since(start) < 10*time.Second {
			polled := time.Now()
			for task.Poll(64) == operator.SourceMore {
			}
			if time.Since(polled) != 0 {
				t.Fatal("Poll waited")
			}
			wakes := task.Wakes.Load()
			for task.Wakes.Load() == wakes {
				time.Sleep(time.Millisecond)
			}
		}
		if n := len(task.Emitted()); n < 9900 || n > 10100 {
			t.Errorf("%d records in 10 s, want 10000", n)
		}
		if wakes := task.Wakes.Load(); wakes > 1001 {
			t.Errorf("woken %d times in 10 s", wakes)
		}
		time.Sleep(time.Minute) // nothing was taken for a minute
		for task.Poll(64) == operator.SourceMore {
		}
		if n := len(task.Emitted()); n != 100 {
			t.Errorf("%d records at once, want the backlog of 100", n)
		}
	})
}

func TestSlowRateWakesForEachRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := flowtest.Open(t, job(Options{Rate: 0.5}), nil, flowtest.Options{})
		task.Poll(64)
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		if w := task.Wakes.Load(); w != 1 {
			t.Errorf("woken %d times", w)
		}
		if task.Poll(64); len(task.Emitted()) != 1 {
			t.Error("no record after two seconds")
		}
	})
}

func TestBadOptionsFailTheTaskThatOpens(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Rate: -1}, {Rate: math.NaN()}, {Records: -1}, {End: true}} {
		task := flowtest.New(t, job(o), nil, flowtest.Options{})
		if err := task.Chain.Open(task.Env); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestBadSplitsAreRefused(t *testing.T) {
	t.Parallel()
	for i, b := range [][]byte{nil, {0, 0, 1, 0}, {1, 0}, {1, 0, 0, 0}, {1, 1, 1, 0}, {1, 0, 1, 0, 0},
		(&split{index: 1, of: 2, done: math.MaxInt64}).append(nil)} {
		if s, err := parseSplit(b); !errors.Is(err, ErrBadSplit) {
			t.Errorf("%d: %+v", i, s)
		}
	}
}

func TestProgressIsThatOfTheSplit(t *testing.T) {
	t.Parallel()
	p, err := ReadProgress((&split{index: 1, of: 3, done: 7}).append(nil))
	if err != nil || p != (Progress{Index: 1, Splits: 3, Emitted: 7}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := ReadProgress([]byte{2}); !errors.Is(err, ErrBadSplit) {
		t.Errorf("got %v", err)
	}
}

func FuzzParseSplit(f *testing.F) {
	f.Add((&split{index: 1, of: 3, done: 1 << 40}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSplit(b)
		if err != nil {
			return
		}
		if again, err := parseSplit(s.append(nil)); err != nil || again != s || s.next() < 0 {
			t.Fatalf("%+v, %+v, %v", s, again, err)
		}
	})
}

func TestRecordsAreMadeWithoutAllocation(t *testing.T) {
	task := flowtest.Open(t, job(Options{}), nil, flowtest.Options{})
	task.Outputs[0].CountOnly = true
	if n := testing.AllocsPerRun(10, func() { task.Poll(1000) }); n != 0 {
		t.Errorf("%v allocations in 1000 records", n)
	}
}
