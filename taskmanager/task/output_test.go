package task

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/operator"
)

// newOutput is an output with one subpartition of at most most segments.
func newOutput(t testing.TB, most int) (*output, *partition.Subpartition) {
	t.Helper()
	network := buffer.NewNetworkPool(100)
	pool, err := network.NewLocalPool(buffer.LocalOptions{Min: 2, Max: most, Accounts: 1, PerAccount: most, Listener: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	p := partition.New(partition.Options{Subpartitions: 1, Pool: pool})
	task := &Task{}
	task.split.begin(time.Now())
	return &output{p: p, task: task}, p.Subpartition(0)
}

// drop takes all that a subpartition has.
func drop(s *partition.Subpartition) {
	for {
		p, outcome := s.Poll(true)
		if outcome != partition.Found {
			return
		}
		p.Data.Release()
	}
}

func TestEmitAllocatesNothing(t *testing.T) {
	o, s := newOutput(t, 10)
	if _, err := s.Attach(func(bool) {}); err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 100)
	round := func() {
		for range 1000 { // about three segments
			o.Emit(1, operator.NoTimestamp, payload)
		}
		drop(s)
		o.task.suspend.Store(false)
	}
	round()
	// A segment costs little, and is not a record.
	if got := testing.AllocsPerRun(100, round); got > 10 {
		t.Errorf("%v allocations for 1000 records", got)
	}
}

func TestFullOutputSuspendsAndWaitingIsBackPressure(t *testing.T) {
	t.Run("Emit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			checkFullOutput(t, func(o *output, b []byte) { o.Emit(1, operator.NoTimestamp, b) })
		})
	})
	t.Run("EmitTo", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			checkFullOutput(t, func(o *output, b []byte) { o.EmitTo(0, operator.NoTimestamp, b) })
		})
	})
}

func checkFullOutput(t *testing.T, emit func(o *output, payload []byte)) {
	o, s := newOutput(t, 2)
	payload := make([]byte, buffer.Capacity/2)
	emitted := 0
	for ; !o.task.suspend.Load(); emitted++ {
		if emitted > 10 {
			t.Fatal("never full")
		}
		emit(o, payload)
	}
	// The chain may still be in the middle of a record that emits more.
	g := group.New(t.Context(), "test")
	if err := g.Go("reader", func(context.Context) error {
		<-time.After(3 * time.Second)
		drop(s)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		emit(o, payload)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	times := o.task.split.read(time.Now())
	if times[hardBackPressured] != 3*time.Second || times[busy] != 0 || times[idle] != 0 {
		t.Errorf("busy %v, idle %v, back-pressured %v", times[busy], times[idle], times[hardBackPressured])
	}
}

func TestSplitAddsUpToTheTime(t *testing.T) {
	t.Parallel()
	start := time.Unix(100, 0)
	var s split
	s.begin(start)
	for i, a := range []activity{idle, busy, softBackPressured, busy, idle} {
		s.enter(a, start.Add(time.Duration(i+1)*time.Second))
	}
	times := s.read(start.Add(10 * time.Second))
	if times[busy] != 3*time.Second || times[idle] != 6*time.Second || times[softBackPressured] != time.Second {
		t.Errorf("busy %v, idle %v, back-pressured %v", times[busy], times[idle], times[softBackPressured])
	}
}
