package gate_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

func unaligned(id weir.CheckpointID) string {
	return string(wire.AppendEvent(nil, wire.Barrier{ID: id, Options: weir.CheckpointOptions{Alignment: weir.Unaligned}}))
}

func timeoutable(id weir.CheckpointID) string {
	return string(wire.AppendEvent(nil, wire.Barrier{ID: id, Options: weir.CheckpointOptions{Timeout: time.Second}}))
}

// next polls one item and returns it as text, with what the barrier left behind.
func (f *fixture) next(t testing.TB, poll func() (gate.Item, bool, error)) string {
	t.Helper()
	item, ok, err := poll()
	switch {
	case err != nil:
		return err.Error()
	case !ok:
		return "nothing"
	case item.Type == wire.TypeData:
		item.Data.Release()
		return fmt.Sprintf("%d: data %d", item.Channel, item.Sequence)
	}
	e, err := wire.DecodeEvent(item.Event)
	if err != nil {
		return fmt.Sprintf("%d: %s", item.Channel, item.Event)
	}
	if item.Announcement {
		return fmt.Sprintf("%d: announcement of %s, %d", item.Channel, e, item.Sequence)
	}
	out := fmt.Sprintf("%d: %s, %d", item.Channel, e, item.Sequence)
	f.CaptureQueued(item, func(base int64, b []byte) {
		out += fmt.Sprintf(" captured(%d bytes of %d, base %d)", len(b), b[0], base)
	})
	return out
}

func (f *fixture) expect(t *testing.T, poll func() (gate.Item, bool, error), want ...string) {
	t.Helper()
	var got []string
	for range want {
		got = append(got, f.next(t, poll))
	}
	wants(t, got, want...)
}

func TestInputCapture(t *testing.T) {
	// The data that is polled until the barrier the task records itself; what is queued
	// then comes from CaptureQueued.
	t.Run("O-INP-01_capture_ends_at_the_barrier", func(t *testing.T) {
		f := newFixture(t, 1, 0, 5, 1, 20)
		u := f.up[0]
		u.data(t, 10, 0) // x
		u.data(t, 11, 0) // y
		f.expect(t, f.Poll, "0: data 0")
		u.data(t, 12, 0) // z
		u.event(t, wire.TypePriorityEvent, unaligned(1), 0)
		u.data(t, 13, 0) // w
		f.expect(t, f.Poll, "0: barrier 1 unaligned, 3 captured(11 bytes of 1, base 7) captured(12 bytes of 2, base 7)",
			"0: data 1", "0: data 2", "0: data 4", "nothing")
	})
	t.Run("O-INP-02_only_what_was_sent_before", func(t *testing.T) {
		f := newFixture(t, 1, 0, 5, 1, 20)
		u := f.up[0]
		u.data(t, 10, 0)
		u.event(t, wire.TypePriorityEvent, unaligned(1), 0)
		u.data(t, 11, 0)
		f.expect(t, f.PollPriority, "0: barrier 1 unaligned, 1 captured(10 bytes of 0, base 7)", "nothing")
	})
	t.Run("O-INP-02_sequence_numbers_wrap_around", func(t *testing.T) {
		f := newFixture(t, 1, 0, 6, 1, 20)
		u := f.up[0]
		u.sequence = math.MaxUint32 - 1
		u.channel.Expect(u.sequence)
		u.data(t, 10, 0)
		u.data(t, 11, 0)
		u.event(t, wire.TypePriorityEvent, unaligned(1), 0) // 0
		u.data(t, 12, 0)
		f.expect(t, f.Poll, "0: barrier 1 unaligned, 0 captured(10 bytes of 254, base 7) captured(11 bytes of 255, base 7)")
	})
	t.Run("O-INP-03_a_newer_barrier_is_queued", func(t *testing.T) {
		f := newFixture(t, 2, 0, 5, 1, 20)
		f.up[1].event(t, wire.TypeAnnouncedEvent, timeoutable(3), 0) // does not overtake
		if got := f.Overtaking(1); got != weir.NoCheckpoint {
			t.Errorf("checkpoint %d", got)
		}
		f = newFixture(t, 2, 0, 5, 1, 20)
		f.up[1].event(t, wire.TypePriorityEvent, unaligned(2), 0)
		if a, b := f.Overtaking(0), f.Overtaking(1); a != weir.NoCheckpoint || b != 2 {
			t.Errorf("checkpoints %d, %d", a, b)
		}
		f.poll(t)
		if got := f.Overtaking(1); got != weir.NoCheckpoint {
			t.Errorf("checkpoint %d after it was polled", got)
		}
	})
	t.Run("O-INP-04_announcement_first_barrier_in_its_place", func(t *testing.T) {
		f := newFixture(t, 1, 0, 5, 1, 20)
		u := f.up[0]
		u.sequence = 4
		u.channel.Expect(4)
		for range 3 {
			u.data(t, 10, 0)
		}
		u.event(t, wire.TypeAnnouncedEvent, timeoutable(1), 0)
		f.expect(t, f.Poll, "0: announcement of barrier 1 aligned, 7", "0: data 4", "0: data 5", "0: data 6", "0: barrier 1 aligned, 7", "nothing")
		f.Resume(0)
		if u.resumed != 1 {
			t.Errorf("resumed %d times", u.resumed)
		}
	})
}

// What the barrier passed was sent before it and is polled; nothing follows until Resume.
func TestMovedBarrierIsPolledFirstAndStillBlocks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2, 0, 5, 1, 20)
	u := f.up[0]
	u.data(t, 10, 0)
	u.event(t, wire.TypeEvent, "e", 0)
	u.data(t, 11, 0)
	if f.ToHead(0, 1) {
		t.Error("moved what is not there")
	}
	u.event(t, wire.TypeAnnouncedEvent, timeoutable(1), 0)
	f.up[1].data(t, 12, 0)
	f.expect(t, f.PollPriority, "0: announcement of barrier 1 aligned, 3", "nothing")
	if f.ToHead(0, 2) || f.ToHead(1, 1) || !f.ToHead(0, 1) || f.ToHead(0, 1) || f.Overtaking(0) != 1 {
		t.Errorf("moved wrongly, overtaking %d", f.Overtaking(0))
	}
	f.expect(t, f.PollPriority, "0: barrier 1 aligned, 3 captured(10 bytes of 0, base 7) captured(11 bytes of 2, base 7)", "nothing")
	f.expect(t, f.PollPriority, "nothing")
	f.expect(t, f.Poll, "0: data 0", "1: data 0", "0: e", "0: data 2", "nothing")
	h := wire.Buffer{Sequence: u.sequence, Type: wire.TypeData, Payload: 1}
	if _, err := u.channel.Take(h); !errors.Is(err, gate.ErrProtocol) {
		t.Errorf("data behind the barrier: %v", err)
	}
	f.Resume(0)
	u.data(t, 12, 0)
	f.expect(t, f.Poll, "0: data 4", "nothing")
}

// Without exclusive buffers what a moved barrier passed may hold the only buffer there is.
// It comes free before the channel is resumed: the barriers of others stand behind data
// that is sent with it.
func TestMovedBarrierKeepsNoBufferFromOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2, 0, 0, 1, 20)
	first, second := f.up[0], f.up[1]
	first.channel.Backlog(1)
	first.data(t, 10, 0)
	second.channel.Backlog(1)
	if second.credit != 0 {
		t.Fatalf("credit %d, the buffer is taken", second.credit)
	}
	first.event(t, wire.TypeAnnouncedEvent, timeoutable(1), 0)
	f.expect(t, f.PollPriority, "0: announcement of barrier 1 aligned, 1")
	if !f.ToHead(0, 1) {
		t.Fatal("not moved")
	}
	f.expect(t, f.Poll, "0: barrier 1 aligned, 1 captured(10 bytes of 0, base 7)", "0: data 0", "nothing")
	if second.credit != 1 {
		t.Fatalf("credit %d while the first channel is blocked", second.credit)
	}
	second.data(t, 11, 0)
	second.event(t, wire.TypeAnnouncedEvent, timeoutable(1), 0)
	f.expect(t, f.Poll, "1: announcement of barrier 1 aligned, 1", "1: data 0", "1: barrier 1 aligned, 1", "nothing")
}

// Priority items call the task even if it did not ask for anything; others do not.
func TestPriorityIsUrgent(t *testing.T) {
	t.Parallel()
	urgent, woken := 0, 0
	network := buffer.NewNetworkPool(20)
	g, err := gate.New(gate.Options{
		Channels: []gate.Channel{{Producer: attempt(0), Remote: true}, {Producer: attempt(1)}}, Exclusive: 4, Floating: 1, Network: network,
		Wake: func() { woken++ }, Urgent: func() { urgent++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{InputGate: g, network: network}
	t.Cleanup(func() { f.Close() })
	u := &upstream{channel: g.Remote(0)}
	u.channel.Open(u)
	p := localProducer(t, network, nil)
	g.AttachLocal(1, p.Subpartition(0))
	u.data(t, 1, 0)
	p.Emit(0, wire.NoTimestamp, []byte("a"))
	p.FlushAll()
	if urgent != 0 {
		t.Errorf("data called the task %d times", urgent)
	}
	u.event(t, wire.TypePriorityEvent, unaligned(1), 0)
	captured := 0
	count := func(_ int, _ int64, b []byte) { captured += len(b) }
	p.BroadcastBarrier(weir.Barrier{ID: 1, Options: weir.CheckpointOptions{Alignment: weir.Unaligned}}, count)
	if urgent != 2 || captured != 3 {
		t.Errorf("urgent %d times, %d bytes captured", urgent, captured)
	}
	f.expect(t, f.PollPriority, "0: barrier 1 unaligned, 1 captured(1 bytes of 0, base 7)", "1: barrier 1 unaligned, 0", "nothing")
	f.expect(t, f.Poll, "0: data 0", "1: data 0", "nothing")
	u.event(t, wire.TypeAnnouncedEvent, timeoutable(2), 0)
	if urgent != 3 || woken == 0 {
		t.Errorf("urgent %d times, woken %d times", urgent, woken)
	}
	p.BroadcastBarrier(weir.Barrier{ID: 2, Options: weir.CheckpointOptions{Timeout: time.Second}}, count)
	if urgent != 4 {
		t.Errorf("urgent %d times", urgent)
	}
	f.expect(t, f.PollPriority, "0: announcement of barrier 2 aligned, 2", "1: announcement of barrier 2 aligned, 0", "nothing")
	f.expect(t, f.Poll, "0: barrier 2 aligned, 2", "1: barrier 2 aligned, 0", "nothing")
}

// localProducer is a partition of one subpartition.
func localProducer(t *testing.T, network *buffer.NetworkPool, decided func(weir.CheckpointID)) *partition.ResultPartition {
	t.Helper()
	pool, err := network.NewLocalPool(buffer.LocalOptions{Min: 2, Max: 4, Accounts: 1, PerAccount: 3})
	if err != nil {
		t.Fatal(err)
	}
	p := partition.New(partition.Options{Subpartitions: 1, Pool: pool, PerOutput: 3, Decided: decided})
	t.Cleanup(p.Close)
	return p
}

// With a local channel the consumer may time out first: it captures what it moves the
// barrier past, and the producer has nothing to decide any more.
func TestLocalConsumerTimesOutFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0, 1, 0, 1, 20)
	var decided []weir.CheckpointID
	p := localProducer(t, f.network, func(id weir.CheckpointID) { decided = append(decided, id) })
	f.AttachLocal(0, p.Subpartition(0))
	p.Emit(0, 5, []byte("abc"))
	capture := func(int, int64, []byte) { t.Error("captured by the producer") }
	if !p.BroadcastBarrier(weir.Barrier{ID: 1, Options: weir.CheckpointOptions{Timeout: time.Second}}, capture) {
		t.Error("decided at once")
	}
	p.Emit(0, 5, []byte("after"))
	f.expect(t, f.PollPriority, "0: announcement of barrier 1 aligned, 0")
	if !f.ToHead(0, 1) || len(decided) != 1 {
		t.Errorf("decided %v", decided)
	}
	p.TimeoutBarrier(1, capture)
	f.expect(t, f.PollPriority, "0: barrier 1 aligned, 0 captured(6 bytes of 5, base 5)")
	f.Resume(0)
	p.FlushAll()
	f.expect(t, f.Poll, "0: data 0", "0: data 0", "nothing")
}

func TestBufferSizesReachTheProducer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1, 1, 1, 1, 20)
	f.AnnounceBufferSize(0, 300)
	if f.up[0].size != 300 {
		t.Errorf("size %d", f.up[0].size)
	}
	late := &upstream{channel: f.Remote(0)}
	late.channel.Open(late)
	if late.size != 300 {
		t.Errorf("size %d of a channel that is opened later", late.size)
	}
	f.AnnounceBufferSize(1, 100) // before there is a producer
	p := localProducer(t, f.network, nil)
	f.AttachLocal(1, p.Subpartition(0))
	lengths := func() (n []int) {
		for {
			item, ok, err := f.Poll()
			if err != nil || !ok {
				return n
			}
			n = append(n, item.Data.Len())
			item.Data.Release()
		}
	}
	p.Emit(0, wire.NoTimestamp, make([]byte, 158)) // 160 with its length and kind, and one more
	f.AnnounceBufferSize(1, 30)                    // from the next segment on
	p.Emit(0, wire.NoTimestamp, make([]byte, 58))
	p.FlushAll()
	if got := fmt.Sprint(lengths()); got != "[100 100 21]" {
		t.Errorf("segments of %s bytes", got)
	}
}

func TestUsageOfInputs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1, 1, 2, 2, 20)
	if u, n := f.PoolUsage(), f.InFlight(); u != 0 || n != 0 {
		t.Errorf("usage %v, %d in flight", u, n)
	}
	f.up[0].data(t, 10, 3)
	if u, n := f.PoolUsage(), f.InFlight(); u != 0.25 || n != 4 {
		t.Errorf("usage %v, %d in flight", u, n)
	}
	p := localProducer(t, f.network, nil)
	f.AttachLocal(1, p.Subpartition(0))
	p.Emit(0, wire.NoTimestamp, make([]byte, 3*buffer.Capacity))
	p.FlushAll()
	if u, n := f.PoolUsage(), f.InFlight(); u != 5.0/7 || n != 8 || !p.BackPressured() || p.PoolUsage() != 1 {
		t.Errorf("usage %v, %d in flight, output %v, %t", u, n, p.PoolUsage(), p.BackPressured())
	}
	f.poll(t)
	if u, n := f.PoolUsage(), f.InFlight(); u != 1.0/7 || n != 3 || p.BackPressured() {
		t.Errorf("usage %v, %d in flight", u, n)
	}
}
