package partition_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// taken collects what a partition captures, as text.
type taken []string

func (c *taken) capture(subpartition int, base int64, b []byte) {
	*c = append(*c, fmt.Sprintf("%d: %d bytes, base %d", subpartition, len(b), base))
}

func barrier(id weir.CheckpointID, a weir.Alignment, timeout time.Duration) weir.Barrier {
	return weir.Barrier{ID: id, Options: weir.CheckpointOptions{Alignment: a, Timeout: timeout}}
}

// head polls what is next of a subpartition.
func (f *fixture) head(t *testing.T, i int) string {
	t.Helper()
	p, outcome := f.Subpartition(i).Poll(true)
	switch {
	case outcome != partition.Found:
		return "nothing"
	case p.Type == wire.TypeData:
		defer p.Data.Release()
		return fmt.Sprintf("%d bytes", p.Data.Len())
	}
	e, err := wire.DecodeEvent(p.Event)
	if err != nil {
		t.Fatal(err)
	}
	b := weir.Barrier(e.(wire.Barrier))
	return fmt.Sprintf("%s, timeout %v, %s", b, b.Options.Timeout, p.Type)
}

func TestForcedAlignment(t *testing.T) {
	t.Run("O-FRC-01_1_one_output_overtakes_the_other_aligns", func(t *testing.T) {
		k := newFixture(t, partition.Options{Partitioning: partition.Rebalance, Subpartitions: 1}, 5, 0)
		p := newFixture(t, partition.Options{Partitioning: partition.Forward, Subpartitions: 1, Aligns: true}, 5, 0)
		var c taken
		for _, f := range []*fixture{k, p} {
			f.Emit(0, 7, []byte("abc"))
			if f.BroadcastBarrier(barrier(2, weir.Unaligned, 0), c.capture) {
				t.Error("an unaligned barrier leaves nothing open")
			}
		}
		wants(t, "captured", c, "0: 6 bytes, base 7")
		wants(t, "K", []string{k.head(t, 0), k.head(t, 0)}, "barrier 2 unaligned, timeout 0s, priority-event", "6 bytes")
		wants(t, "P", []string{p.head(t, 0), p.head(t, 0), p.head(t, 0)}, "6 bytes", "barrier 2 forced-aligned, timeout 0s, blocking-event", "nothing")
	})
	t.Run("O-FRC-01_the_timeout_is_kept_and_means_nothing", func(t *testing.T) {
		p := newFixture(t, partition.Options{Partitioning: partition.Broadcast, Subpartitions: 2, Aligns: true}, 5, 0)
		var c taken
		p.Emit(0, 7, []byte("abc"))
		if p.BroadcastBarrier(barrier(3, weir.Aligned, time.Second), c.capture) {
			t.Error("a barrier that cannot time out leaves nothing open")
		}
		p.TimeoutBarrier(3, c.capture)
		wants(t, "captured", c)
		for i := range 2 {
			wants(t, "P", []string{p.head(t, i), p.head(t, i)}, "6 bytes", "barrier 3 forced-aligned, timeout 1s, blocking-event")
		}
	})
}

func TestBarriersGoOutAsTheirOptionsSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		barrier weir.Barrier
		want    string
	}{
		{barrier(1, weir.AtLeastOnce, 0), "barrier 1 at-least-once, timeout 0s, event"},
		{barrier(2, weir.Aligned, 0), "barrier 2 aligned, timeout 0s, blocking-event"},
		{barrier(3, weir.Aligned, time.Second), "barrier 3 aligned, timeout 1s, announced-event"},
		{barrier(4, weir.Unaligned, 0), "barrier 4 unaligned, timeout 0s, priority-event"},
		{barrier(5, weir.ForcedAligned, 0), "barrier 5 forced-aligned, timeout 0s, blocking-event"},
	} {
		f := newFixture(t, partition.Options{Partitioning: partition.Forward, Subpartitions: 1}, 5, 0)
		if open := f.BroadcastBarrier(c.barrier, nil); open != (c.barrier.ID == 3) {
			t.Errorf("%s: undecided: %t", c.barrier, open)
		}
		wants(t, c.barrier.String(), []string{f.head(t, 0)}, c.want)
	}
}

func TestTimeoutableBarrierIsDecidedOnce(t *testing.T) {
	t.Parallel()
	var decided []string
	f := newFixture(t, partition.Options{Partitioning: partition.Rebalance, Subpartitions: 3,
		Decided: func(id weir.CheckpointID) { decided = append(decided, fmt.Sprint(id)) }}, 5, 0)
	var c taken
	emit := func() {
		for i := range 3 {
			f.Emit(0, wire.NoTimestamp, make([]byte, 10+i))
		}
	}
	emit()
	if !f.BroadcastBarrier(barrier(1, weir.Aligned, time.Second), c.capture) {
		t.Fatal("decided at once")
	}
	f.read(t, 1)
	wants(t, "decided", decided)
	f.TimeoutBarrier(2, c.capture)
	f.TimeoutBarrier(1, c.capture) // 0 and 2 capture, 1 has been polled
	wants(t, "captured", c, "0: 12 bytes, base 0", "2: 14 bytes, base 0")
	wants(t, "decided", decided, "1")
	f.TimeoutBarrier(1, c.capture)
	f.AbortBarrier(1)
	f.Subpartition(1).Resume()

	emit()
	f.BroadcastBarrier(barrier(2, weir.Aligned, time.Second), c.capture)
	f.AbortBarrier(2)
	wants(t, "decided after the abort", decided, "1", "2")

	f.BroadcastBarrier(barrier(3, weir.Aligned, time.Second), c.capture)
	f.BroadcastBarrier(barrier(4, weir.Aligned, time.Second), c.capture) // as if 3 were aborted
	wants(t, "decided after a newer one", decided, "1", "2", "3")
	f.TimeoutBarrier(3, c.capture)
	for i := range 3 {
		f.Subpartition(i).Release()
	}
	wants(t, "decided after all readers left", decided, "1", "2", "3", "4")
	if f.BroadcastBarrier(barrier(5, weir.Aligned, time.Second), c.capture) {
		t.Error("nobody reads: nothing is open")
	}
	wants(t, "captured", c, "0: 12 bytes, base 0", "2: 14 bytes, base 0")
	wants(t, "decided", decided, "1", "2", "3", "4")
}

func TestSegmentsAreAsLargeAsTheirReaderAsked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Rebalance, Subpartitions: 2}, 10, 0)
	f.Subpartition(1).SetBufferSize(20)
	for range 2 {
		f.Emit(0, wire.NoTimestamp, make([]byte, 48)) // 50 with length and kind
	}
	f.Subpartition(1).SetBufferSize(1 << 30) // from the next segment on, as large as can be
	f.Emit(0, wire.NoTimestamp, make([]byte, 48))
	f.Emit(0, wire.NoTimestamp, make([]byte, 48))
	f.FlushAll()
	wants(t, "sub 0", []string{f.head(t, 0), f.head(t, 0)}, "100 bytes", "nothing")
	wants(t, "sub 1", []string{f.head(t, 1), f.head(t, 1), f.head(t, 1), f.head(t, 1)}, "20 bytes", "20 bytes", "20 bytes", "40 bytes")
}

// TestBarrierGoesEverywhereBeforeAnythingIsCopied: with much in flight, copying takes
// longer than all else, and no consumer is to wait for another's part.
func TestBarrierGoesEverywhereBeforeAnythingIsCopied(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{0, time.Second} {
		f := newFixture(t, partition.Options{Partitioning: partition.Broadcast, Subpartitions: 3}, 9, 0)
		f.Emit(0, 7, []byte("abc"))
		var heads []string
		capture := func(subpartition int, _ int64, _ []byte) {
			if subpartition == 0 {
				for i := range 3 {
					heads = append(heads, f.head(t, i))
				}
			}
		}
		if timeout == 0 {
			f.BroadcastBarrier(barrier(2, weir.Unaligned, 0), capture)
		} else {
			f.BroadcastBarrier(barrier(2, weir.Aligned, timeout), capture)
			f.TimeoutBarrier(2, capture)
		}
		head := fmt.Sprintf("barrier 2 unaligned, timeout %v, priority-event", timeout)
		wants(t, "heads", heads, head, head, head)
		for i := range 3 {
			wants(t, "rest", []string{f.head(t, i)}, "6 bytes")
		}
	}
}
