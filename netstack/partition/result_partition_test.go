package partition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// fixture is a partition, its pool, and a reader of each subpartition.
type fixture struct {
	*partition.ResultPartition
	network  *buffer.NetworkPool
	pool     *buffer.LocalPool
	woken    int
	released int
	cutters  []wire.Cutter
}

func newFixture(t testing.TB, o partition.Options, perOutput, overdraft int) *fixture {
	t.Helper()
	f := &fixture{network: buffer.NewNetworkPool(64)}
	n := o.Subpartitions
	var err error
	f.pool, err = f.network.NewLocalPool(buffer.LocalOptions{Min: n + 1, Max: n*perOutput + 1, Overdraft: overdraft,
		Accounts: n, PerAccount: perOutput, Listener: func() { f.woken++ }})
	if err != nil {
		t.Fatal(err)
	}
	o.Pool = f.pool
	o.Released = func() { f.released++ }
	f.ResultPartition = partition.New(o)
	f.cutters = make([]wire.Cutter, n)
	for i := range n {
		f.cutters[i].Keyed = o.Partitioning == partition.Hash
		if _, err := f.Subpartition(i).Attach(func(bool) {}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		f.Close()
		for i := range n {
			f.Subpartition(i).Release()
		}
		if f.released != 1 {
			t.Errorf("released %d times", f.released)
		}
		if err := f.network.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// read polls everything of a subpartition, and returns elements and events as text.
func (f *fixture) read(t testing.TB, i int) (seen []string) {
	t.Helper()
	for {
		p, outcome := f.Subpartition(i).Poll(true)
		if outcome != partition.Found {
			return seen
		}
		if p.Type != wire.TypeData {
			seen = append(seen, string(p.Event))
			continue
		}
		f.cutters[i].Feed(p.Data.Bytes(), p.Data.Base())
		for {
			var e wire.Element
			ok, err := f.cutters[i].Next(&e)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			switch {
			case e.Kind == wire.KindRecord:
				seen = append(seen, string(e.Payload))
			case e.Kind == wire.KindTimedRecord:
				seen = append(seen, fmt.Sprintf("%s@%d", e.Payload, e.Timestamp))
			case e.Kind == wire.KindWatermark:
				seen = append(seen, fmt.Sprintf("watermark %d", e.Timestamp))
			default:
				seen = append(seen, e.Kind.String())
			}
		}
		p.Data.Release()
	}
}

func wants(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestElementsAndEventsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Rebalance, Subpartitions: 2}, 10, 0)
	f.Emit(0, 100, []byte("a"))
	f.Emit(0, wire.NoTimestamp, []byte("b"))
	f.Emit(0, 90, []byte("c"))
	f.Watermark(95)
	f.Status(true)
	wants(t, "before a flush", f.read(t, 0))
	f.BroadcastEvent(partition.Event{Type: wire.TypeEvent, Bytes: []byte("event")})
	f.Status(false)
	f.Emit(0, weirMax, []byte("d"))
	f.FlushIfRequested()
	wants(t, "sub 0", f.read(t, 0), "a@100", "c@90", "watermark 95", "idle", "event")
	f.RequestFlush()
	f.FlushIfRequested()
	wants(t, "sub 0, flushed", f.read(t, 0), "active")
	wants(t, "sub 1", f.read(t, 1), "b", "watermark 95", "idle", "event", "active", fmt.Sprintf("d@%d", weirMax))
	if f.Records() != 4 {
		t.Errorf("%d records", f.Records())
	}
}

const weirMax = int64(weir.MaxWatermark)

func TestHashSendsEachKeyGroupToItsOwner(t *testing.T) {
	t.Parallel()
	const max, p = 128, 3
	f := newFixture(t, partition.Options{Partitioning: partition.Hash, Subpartitions: p, MaxParallelism: max}, 10, 0)
	want := make([][]string, p)
	for g := range max {
		hash := uint64(g)<<57 | 12345
		owner := weir.KeyGroupOwner(weir.KeyGroupOf(hash, max), max, p)
		if int(weir.KeyGroupOf(hash, max)) != g {
			t.Fatalf("hash %x is not of group %d", hash, g)
		}
		name := fmt.Sprint(g)
		want[owner] = append(want[owner], name)
		f.Emit(hash, wire.NoTimestamp, []byte(name))
	}
	f.FlushAll()
	for i := range p {
		wants(t, fmt.Sprintf("sub %d", i), f.read(t, i), want[i]...)
	}
}

func TestRescaleGoesRound(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Rescale, Subpartitions: 3}, 10, 0)
	for i := range 7 {
		f.Emit(0, wire.NoTimestamp, fmt.Append(nil, i))
	}
	f.FlushAll()
	wants(t, "sub 0", f.read(t, 0), "0", "3", "6")
	wants(t, "sub 1", f.read(t, 1), "1", "4")
	wants(t, "sub 2", f.read(t, 2), "2", "5")
}

func TestBroadcastReachesEverySubpartition(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Broadcast, Subpartitions: 3}, 10, 0)
	long := strings.Repeat("long", buffer.Capacity/2) // over three segments
	f.Emit(5, 7, []byte("a"))
	f.Emit(0, wire.NoTimestamp, []byte(long))
	f.BroadcastEvent(partition.Event{Type: wire.TypeEvent, Bytes: []byte("event")})
	f.Emit(0, -3, []byte("b"))
	f.FlushAll()
	for i := range 3 {
		wants(t, fmt.Sprintf("sub %d", i), f.read(t, i), "a@7", long, "event", "b@-3")
	}
	if f.Records() != 3 {
		t.Errorf("%d records, want each counted once", f.Records())
	}
}

func TestEmitToGoesWhereItSays(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Custom, Subpartitions: 3}, 10, 0)
	long := strings.Repeat("long", buffer.Capacity/2)
	f.EmitTo(2, 7, []byte("a"))
	f.EmitTo(2, wire.NoTimestamp, []byte(long))
	f.EmitTo(0, wire.NoTimestamp, nil)
	f.Watermark(9)
	f.FlushAll()
	wants(t, "sub 0", f.read(t, 0), "", "watermark 9")
	wants(t, "sub 1", f.read(t, 1), "watermark 9")
	wants(t, "sub 2", f.read(t, 2), "a@7", long, "watermark 9")
	if f.Records() != 3 {
		t.Errorf("%d records", f.Records())
	}
}

func TestEmitToPublishesWithoutBufferTimeout(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Custom, Subpartitions: 2, EachRecord: true}, 10, 0)
	f.EmitTo(1, wire.NoTimestamp, []byte("a"))
	wants(t, "sub 1", f.read(t, 1), "a")
}

// TestBroadcastWaitsForTheSlowest has one of three readers stop: the partition is not
// available, the others get all that was emitted, and so does it in the end.
func TestBroadcastWaitsForTheSlowest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Broadcast, Subpartitions: 3}, 2, 3)
	record := make([]byte, buffer.Capacity/4)
	n := 0
	for ; f.Available(); n++ {
		f.Emit(0, wire.NoTimestamp, record)
		f.FlushAll()
		f.read(t, 0)
		f.read(t, 1)
		if n > 100 {
			t.Fatal("never full")
		}
	}
	if got := len(f.read(t, 2)); got != n {
		t.Errorf("the slow reader got %d of %d records", got, n)
	}
	if f.woken == 0 || !f.Available() {
		t.Errorf("woken %d times, available: %v", f.woken, f.Available())
	}
}

func TestEachRecordIsPublishedWithoutBufferTimeout(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Forward, Subpartitions: 1, EachRecord: true}, 10, 0)
	for _, s := range []string{"a", "b"} {
		f.Emit(0, wire.NoTimestamp, []byte(s))
		wants(t, "sub 0", f.read(t, 0), s)
	}
	f.Watermark(7)
	f.Status(true)
	wants(t, "sub 0", f.read(t, 0), "watermark 7", "idle")
}

// A task that is about to wait publishes what it has; it goes on when its reader gives
// a segment back, and when the partition fails.
func TestEmitWaitsForABufferUntilOneComesOrThePartitionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, partition.Options{Partitioning: partition.Forward, Subpartitions: 1}, 1, 1)
		big := make([]byte, buffer.Capacity-1) // with its head a little more than a segment
		if !f.Available() {
			t.Fatal("not available")
		}
		emitted := 0
		g := group.New(context.Background(), "task")
		g.Go("task", func(context.Context) error {
			for range 10 {
				f.Emit(0, wire.NoTimestamp, big)
				emitted++
			}
			return nil
		})
		synctest.Wait()
		// Two buffers, and one of overdraft: the third record begins in the third buffer.
		if emitted != 2 || f.QueuedBytes() != 3*buffer.Capacity || f.Available() {
			t.Errorf("%d records, %d bytes queued, available=%t", emitted, f.QueuedBytes(), f.Available())
		}
		// The overdraft is paid back first; the next buffer lets the task go on, until it
		// has overdrawn again.
		for _, want := range []int{2, 4} {
			p, _ := f.Subpartition(0).Poll(true)
			p.Data.Release()
			synctest.Wait()
			if emitted != want {
				t.Errorf("%d records emitted, want %d", emitted, want)
			}
		}
		cause := errors.New("cancelled")
		f.Fail(cause)
		if err := g.Wait(); err != nil || emitted != 10 {
			t.Errorf("%d emitted, %v", emitted, err)
		}
		f.Fail(errors.New("a second cause"))
		if _, outcome := f.Subpartition(0).Poll(true); outcome != partition.Ended || f.Subpartition(0).Err() != cause {
			t.Errorf("outcome %d, %v", outcome, f.Subpartition(0).Err())
		}
		f.BroadcastEvent(partition.NewEvent(wire.TypeEvent, wire.EndOfPartition{}))
	})
}

func TestAvailabilityWakesTheTask(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Rebalance, Subpartitions: 2}, 1, 0)
	big := make([]byte, buffer.Capacity-1)
	f.Emit(0, wire.NoTimestamp, []byte("x"))
	f.Emit(0, wire.NoTimestamp, []byte("x")) // each has a segment; one is left
	if !f.Available() {
		t.Error("one buffer is free")
	}
	f.Emit(0, wire.NoTimestamp, big) // subpartition 0 has two: beyond its soft limit
	if f.Available() {
		t.Error("available beyond the soft limit")
	}
	before := f.woken
	p, outcome := f.Subpartition(0).Poll(true)
	if outcome != partition.Found {
		t.Fatal(outcome)
	}
	if f.woken != before {
		t.Error("woken before anything was given back")
	}
	p.Data.Release()
	if f.woken == before || !f.Available() {
		t.Error("not available after a buffer came back")
	}
}

func TestRecordsBeyondTheBoundPanic(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Forward, Subpartitions: 1}, 1, 0)
	err := group.Catch(func() error {
		f.Emit(0, 0, make([]byte, wire.MaxElement))
		return nil
	})
	if !errors.Is(err, partition.ErrRecordTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestAPartitionThatEndedIsReadAfterClose(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Forward, Subpartitions: 1}, 2, 0)
	f.Emit(0, wire.NoTimestamp, []byte("a"))
	end := partition.NewEvent(wire.TypeEvent, wire.EndOfPartition{})
	f.BroadcastEvent(end)
	f.Close()
	wants(t, "sub 0", f.read(t, 0), "a", string(end.Bytes))
	if f.Ended() {
		t.Error("ended before its reader released it")
	}
}

func TestClosingEarlyFailsReaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Forward, Subpartitions: 1}, 2, 0)
	f.Emit(0, wire.NoTimestamp, []byte("a"))
	f.Close()
	if _, outcome := f.Subpartition(0).Poll(true); outcome != partition.Ended || !errors.Is(f.Subpartition(0).Err(), partition.ErrClosed) {
		t.Errorf("outcome %d, %v", outcome, f.Subpartition(0).Err())
	}
}

func TestAReleasedSubpartitionTakesNoBuffers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, partition.Options{Partitioning: partition.Rebalance, Subpartitions: 2}, 2, 0)
	f.Subpartition(0).Release()
	for range 100 { // more than all buffers, if the lost reader kept any
		f.Emit(0, wire.NoTimestamp, make([]byte, 20_000))
		f.Emit(0, wire.NoTimestamp, []byte("small"))
	}
	f.FlushAll()
	if got := f.read(t, 1); len(got) != 100 {
		t.Errorf("%d records", len(got))
	}
}

// drain reads without keeping anything.
func drain(f *fixture) {
	for i := range f.Subpartitions() {
		for {
			p, outcome := f.Subpartition(i).Poll(true)
			if outcome != partition.Found {
				break
			}
			p.Data.Release()
		}
	}
}

func TestEmitAllocatesNothing(t *testing.T) {
	f := newFixture(t, partition.Options{Partitioning: partition.Hash, Subpartitions: 4, MaxParallelism: 128}, 4, 0)
	payload := make([]byte, 100)
	k := uint64(0)
	emit := func() {
		for range 1000 {
			k++
			f.Emit(k*0x9E3779B97F4A7C15, int64(k), payload)
		}
		f.FlushAll()
		drain(f)
	}
	emit() // makes buffers
	if got := testing.AllocsPerRun(100, emit); got != 0 {
		t.Errorf("%v allocations per 1000 records", got)
	}
}

func TestBroadcastAndEmitToAllocateNothing(t *testing.T) {
	payload := make([]byte, 100)
	for _, p := range []partition.Partitioning{partition.Broadcast, partition.Custom, partition.Rescale} {
		f := newFixture(t, partition.Options{Partitioning: p, Subpartitions: 4}, 8, 0)
		emit := func() {
			for i := range 1000 {
				if p == partition.Custom {
					f.EmitTo(i%4, int64(i), payload)
				} else {
					f.Emit(0, int64(i), payload)
				}
			}
			f.FlushAll()
			drain(f)
		}
		emit() // makes buffers
		if got := testing.AllocsPerRun(100, emit); got != 0 {
			t.Errorf("%s: %v allocations per 1000 records", p, got)
		}
	}
}

func BenchmarkEmit(b *testing.B) {
	for _, size := range []int{16, 100, 1000} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			f := newFixture(b, partition.Options{Partitioning: partition.Hash, Subpartitions: 2, MaxParallelism: 128}, 10, 0)
			payload := make([]byte, size)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			k := uint64(0)
			for b.Loop() {
				if k++; k%400 == 0 {
					drain(f)
				}
				f.Emit(k*0x9E3779B97F4A7C15, int64(k), payload)
			}
		})
	}
}
