package gate_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/credit"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// upstream is the producer's end of a remote channel.
type upstream struct {
	channel  *gate.RemoteChannel
	credit   int // what was announced and not used
	due      int
	resumed  int
	closed   int
	size     int
	sequence uint32
}

func (u *upstream) CreditDue()       { u.due++; u.credit += u.channel.Announce() }
func (u *upstream) Resume()          { u.resumed++ }
func (u *upstream) BufferSize(n int) { u.size = n }
func (u *upstream) Close()           { u.closed++ }

// data sends a data message of n bytes.
func (u *upstream) data(t testing.TB, n, backlog int) {
	t.Helper()
	h := wire.Buffer{Sequence: u.sequence, Type: wire.TypeData, Payload: n, Backlog: uint32(backlog), Base: 7}
	b, err := u.channel.Take(h)
	if err != nil {
		t.Fatal(err)
	}
	u.sequence++
	u.credit--
	if b == nil {
		return // closed
	}
	for i := range n {
		b.Data()[i] = byte(h.Sequence)
	}
	u.channel.Deliver(h, b)
}

func (u *upstream) event(t testing.TB, typ wire.DataType, event string, backlog int) {
	t.Helper()
	h := wire.Buffer{Sequence: u.sequence, Type: typ, Payload: len(event), Backlog: uint32(backlog)}
	if err := u.channel.DeliverEvent(h, []byte(event)); err != nil {
		t.Fatal(err)
	}
	u.sequence++
}

// fixture is a gate with remote channels, open.
type fixture struct {
	*gate.InputGate
	network *buffer.NetworkPool
	up      []*upstream
	woken   int
}

func attempt(i int) weir.AttemptID { return weir.AttemptID{Vertex: 1, Subtask: int32(i), N: 1} }

func newFixture(t testing.TB, remotes, locals, exclusive, floating, total int) *fixture {
	t.Helper()
	f := &fixture{network: buffer.NewNetworkPool(total)}
	o := gate.Options{Exclusive: exclusive, Floating: floating, Network: f.network, Wake: func() { f.woken++ }}
	for i := range remotes + locals {
		o.Channels = append(o.Channels, gate.Channel{Producer: attempt(i), Remote: i < remotes})
	}
	g, err := gate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.InputGate = g
	for i := range remotes {
		u := &upstream{channel: g.Remote(i)}
		u.credit, _ = u.channel.Open(u)
		f.up = append(f.up, u)
	}
	t.Cleanup(func() {
		f.Close()
		if err := f.network.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// poll polls everything, releases it, and returns it as text.
func (f *fixture) poll(t testing.TB) (seen []string) {
	t.Helper()
	for {
		item, ok, err := f.Poll()
		if err != nil {
			return append(seen, err.Error())
		}
		if !ok {
			return seen
		}
		if item.Type == wire.TypeData {
			seen = append(seen, fmt.Sprintf("%d:%d bytes", item.Channel, item.Data.Len()))
			item.Data.Release()
		} else {
			seen = append(seen, fmt.Sprintf("%d:%s", item.Channel, item.Event))
		}
	}
}

func wants(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestCredit(t *testing.T) {
	t.Run("O-CRD-01_backlog_asks_for_floating_buffers", func(t *testing.T) {
		f := newFixture(t, 1, 0, 2, 8, 20)
		u := f.up[0]
		if u.credit != 2 {
			t.Errorf("initial credit %d", u.credit)
		}
		u.data(t, 10, 3)
		if u.credit != 1+4 || u.due != 1 {
			t.Errorf("credit %d after %d announcements", u.credit, u.due)
		}
	})
	t.Run("O-CRD-02_a_returned_floating_buffer_goes_to_who_waits", func(t *testing.T) {
		f := newFixture(t, 2, 0, 2, 2, 20)
		a, b := f.up[0], f.up[1]
		b.data(t, 10, 0) // one exclusive buffer is used, so one of the two floating ones is taken
		if b.credit != 2 {
			t.Errorf("credit %d", b.credit)
		}
		a.event(t, wire.TypeEvent, "e", 3) // needs 5, has 2, gets the one that is left
		if a.credit != 3 || a.due != 1 {
			t.Errorf("credit %d after %d announcements", a.credit, a.due)
		}
		f.poll(t) // b's exclusive buffer comes back: its floating one goes to the other channel
		if a.credit != 4 || a.due != 2 || b.credit != 2 {
			t.Errorf("credit %d after %d announcements, %d", a.credit, a.due, b.credit)
		}
	})
	t.Run("O-CRD-03_events_need_no_credit", func(t *testing.T) {
		f := newFixture(t, 1, 0, 1, 1, 20)
		u := f.up[0]
		u.data(t, 10, 0)
		u.data(t, 11, 0)
		if u.credit != 0 {
			t.Fatalf("credit %d", u.credit)
		}
		u.event(t, wire.TypeEvent, "e", 0)
		wants(t, f.poll(t), "0:10 bytes", "0:11 bytes", "0:e")
		if u.credit != 1 {
			t.Errorf("credit %d after all came back", u.credit)
		}
	})
	t.Run("O-CRD-05_surplus_goes_back_to_the_pool", func(t *testing.T) {
		f := newFixture(t, 1, 0, 3, 3, 20)
		u := f.up[0]
		u.data(t, 10, 2)
		u.event(t, wire.TypeEvent, "e", 1)
		before, due, used := u.credit, u.due, f.BuffersInUse()
		f.poll(t)
		if u.credit != before || u.due != due || f.BuffersInUse() != used-1 {
			t.Errorf("credit %d after %d, %d buffers of %d in use", u.credit, before, f.BuffersInUse(), used)
		}
	})
}

func TestDataWithoutCreditFailsTheChannel(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1, 0, 1, 1, 20)
	f.up[0].data(t, 10, 0)
	f.up[0].data(t, 10, 0)
	if b, err := f.up[0].channel.Take(wire.Buffer{Sequence: 2, Type: wire.TypeData, Payload: 1}); !errors.Is(err, credit.ErrNoCredit) || b != nil {
		t.Errorf("got %v", err)
	}
}

// Credit is announced in quarters of the window, but never so late that the producer
// runs dry.
func TestAnnouncementsGatherWhileTheProducerHasCredit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1, 0, 2, 14, 40)
	u := f.up[0]
	for range 2 {
		u.data(t, 1, 14)
	}
	f.poll(t)
	window, messages := f.up[0].credit, u.due
	if window < 12 {
		t.Fatalf("credit %d", window)
	}
	for range 160 {
		if u.credit == 0 {
			t.Fatal("the producer ran dry")
		}
		u.data(t, 1, 14)
		f.poll(t)
	}
	if n := u.due - messages; n < 160/5 || n > 160/3 {
		t.Errorf("%d announcements for 160 messages", n)
	}
	for u.credit > 0 { // while the task takes nothing, the producer gets all there is
		u.data(t, 1, 14)
	}
	if n := u.channel.Announce(); n != 0 {
		t.Errorf("%d credits were kept back", n)
	}
}

func TestMessagesThatAreOutOfOrderAreRefused(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]wire.Buffer{
		"gap":                {Sequence: 2, Type: wire.TypeData, Payload: 1},
		"repeated":           {Sequence: 0, Type: wire.TypeData, Payload: 1},
		"empty":              {Sequence: 1, Type: wire.TypeData},
		"no type":            {Sequence: 1, Payload: 1},
		"event out of order": {Sequence: 3, Type: wire.TypeEvent, Payload: 1},
		"event too long":     {Sequence: 1, Type: wire.TypeEvent, Payload: wire.MaxEvent + 1},
	} {
		f := newFixture(t, 1, 0, 2, 1, 20)
		f.up[0].data(t, 10, 0)
		var err error
		if h.Type.IsEvent() {
			err = f.up[0].channel.DeliverEvent(h, make([]byte, h.Payload))
		} else {
			_, err = f.up[0].channel.Take(h)
		}
		if !errors.Is(err, gate.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSequenceNumbersWrapAround(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1, 0, 3, 1, 20)
	u := f.up[0]
	u.sequence = math.MaxUint32 - 1
	u.channel.Expect(u.sequence)
	for n := range 4 {
		u.data(t, n+1, 0)
	}
	wants(t, f.poll(t), "0:1 bytes", "0:2 bytes", "0:3 bytes", "0:4 bytes")
}

func TestABlockedChannelBringsNothingUntilResumed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2, 0, 2, 1, 20)
	a, b := f.up[0], f.up[1]
	a.event(t, wire.TypeBlockingEvent, "barrier", 0)
	b.data(t, 5, 0)
	wants(t, f.poll(t), "0:barrier", "1:5 bytes")
	if err := a.channel.DeliverEvent(wire.Buffer{Sequence: 1, Type: wire.TypeEvent, Payload: 1}, []byte("x")); !errors.Is(err, gate.ErrProtocol) {
		t.Errorf("an event of a stopped producer: %v", err)
	}
	f.Resume(0)
	if a.resumed != 1 {
		t.Errorf("resumed %d times", a.resumed)
	}
	woken := f.woken
	a.data(t, 6, 0)
	if f.woken != woken+1 {
		t.Error("not woken")
	}
	a.data(t, 7, 0)
	if f.woken != woken+1 {
		t.Error("woken twice")
	}
	wants(t, f.poll(t), "0:6 bytes", "0:7 bytes")
}

func TestChannelsTakeTurnsAndPriorityComesFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3, 0, 3, 1, 20)
	for _, u := range f.up[:2] {
		for n := range 3 {
			u.data(t, n+1, 0)
		}
	}
	f.up[2].data(t, 1, 0)
	f.up[2].event(t, wire.TypePriorityEvent, "p1", 0)
	f.up[2].event(t, wire.TypePriorityEvent, "p2", 0)
	wants(t, f.poll(t), "2:p1", "2:p2", "0:1 bytes", "1:1 bytes", "2:1 bytes", "0:2 bytes", "1:2 bytes", "0:3 bytes", "1:3 bytes")
	if f.Consumed(0) != 6 || f.Consumed(2) != 1 || f.QueuedBytes() != 0 {
		t.Errorf("consumed %d, %d; queued %d", f.Consumed(0), f.Consumed(2), f.QueuedBytes())
	}
}

func TestTooManyEventsAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1, 0, 1, 1, 20)
	u := f.up[0]
	for range 1024 {
		u.event(t, wire.TypeEvent, "e", 0)
	}
	if err := u.channel.DeliverEvent(wire.Buffer{Sequence: u.sequence, Type: wire.TypeEvent, Payload: 1}, []byte("e")); !errors.Is(err, gate.ErrProtocol) {
		t.Errorf("got %v", err)
	}
}

// Exclusive buffers that are still lent out when a gate is made become credit when
// they come back.
func TestExclusiveBuffersMayComeLater(t *testing.T) {
	t.Parallel()
	network := buffer.NewNetworkPool(5)
	lender, err := network.NewLocalPool(buffer.LocalOptions{Min: 1, Max: 5})
	if err != nil {
		t.Fatal(err)
	}
	var lent []*buffer.Buffer
	for range 5 {
		lent = append(lent, lender.TryRequest(0))
	}
	g, err := gate.New(gate.Options{Channels: []gate.Channel{{Remote: true}}, Exclusive: 2, Floating: 1, Network: network, Wake: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{channel: g.Remote(0)}
	lent[0].Release()
	if u.credit, _ = u.channel.Open(u); u.credit != 1 {
		t.Errorf("initial credit %d", u.credit)
	}
	for _, b := range lent[1:] {
		b.Release()
	}
	if u.credit != 2 {
		t.Errorf("credit %d", u.credit)
	}
	g.Close()
	lender.Close()
	if err := network.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFailedChannelFailsTheGate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2, 0, 1, 1, 20)
	f.poll(t)
	f.up[1].event(t, wire.TypeEvent, string(wire.AppendEvent(nil, wire.EndOfPartition{})), 0)
	f.Fail(1, errors.New("its connection went after its last event"))
	if got := f.poll(t); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	f.End(1)
	cause := errors.New("connection lost")
	woken := f.woken
	f.Fail(0, cause)
	_, _, err := f.Poll()
	var lost *gate.PartitionLost
	if !errors.As(err, &lost) || lost.Producer != attempt(0) || !errors.Is(err, cause) || f.woken != woken+1 {
		t.Errorf("got %v, woken %d times", err, f.woken-woken)
	}
}

func TestClosingGivesEverythingBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2, 0, 2, 3, 20)
	a, b := f.up[0], f.up[1]
	a.data(t, 5, 4)
	a.data(t, 6, 4)
	b.data(t, 7, 0)
	item, _, _ := f.Poll()
	f.Close()
	f.Close()
	if a.closed != 1 || b.closed != 1 {
		t.Errorf("closed %d and %d times", a.closed, b.closed)
	}
	a.credit = 1
	a.data(t, 8, 0) // was on its way: dropped
	if err := a.channel.DeliverEvent(wire.Buffer{Sequence: 99, Type: wire.TypeEvent, Payload: 1}, []byte("e")); err != nil {
		t.Error(err)
	}
	item.Data.Release() // the task still had it
	if _, ok := a.channel.Open(a); ok {
		t.Error("a closed channel was opened")
	}
}

func TestLocalChannels(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0, 2, 1, 1, 20)
	var parts []*partition.ResultPartition
	for i := range 2 {
		pool, err := f.network.NewLocalPool(buffer.LocalOptions{Min: 2, Max: 4, Accounts: 1, PerAccount: 4})
		if err != nil {
			t.Fatal(err)
		}
		p := partition.New(partition.Options{Partitioning: partition.Forward, Subpartitions: 1, Pool: pool})
		defer p.Close()
		parts = append(parts, p)
		f.AttachLocal(i, p.Subpartition(0))
	}
	wants(t, f.poll(t))
	parts[0].Emit(0, wire.NoTimestamp, []byte("abc"))
	parts[0].FlushAll()
	if f.woken != 1 || f.QueuedBytes() != 5 {
		t.Errorf("woken %d times, %d bytes queued", f.woken, f.QueuedBytes())
	}
	parts[0].BroadcastEvent(partition.Event{Type: wire.TypeBlockingEvent, Bytes: []byte("barrier")})
	parts[0].Emit(0, wire.NoTimestamp, []byte("d"))
	parts[0].FlushAll()
	parts[1].BroadcastEvent(partition.Event{Type: wire.TypePriorityEvent, Bytes: []byte("priority")})
	wants(t, f.poll(t), "1:priority", "0:5 bytes", "0:barrier")
	f.Resume(0)
	wants(t, f.poll(t), "0:3 bytes")
	if f.Consumed(0) != 8 {
		t.Errorf("consumed %d", f.Consumed(0))
	}
	last := partition.NewEvent(wire.TypeEvent, wire.EndOfPartition{})
	parts[0].BroadcastEvent(last)
	if got := f.poll(t); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	f.End(0)
	if !parts[0].Ended() {
		t.Error("the partition is not released")
	}
	parts[1].Fail(errors.New("task failed"))
	_, _, err := f.Poll()
	var lost *gate.PartitionLost
	if !errors.As(err, &lost) || lost.Producer != attempt(1) {
		t.Errorf("got %v", err)
	}
}

// Without exclusive buffers a channel lives on floating ones, which it gives up while
// its producer is stopped.
func TestWithoutExclusiveBuffers(t *testing.T) {
	t.Run("O-CRD-04_floating_buffers_are_given_up", func(t *testing.T) {
		f := newFixture(t, 2, 0, 0, 3, 20)
		u := f.up[0]
		if u.credit != 0 || !u.channel.WithoutExclusive() {
			t.Fatalf("initial credit %d", u.credit)
		}
		u.channel.Backlog(2)
		if u.credit != 2 || u.due != 1 {
			t.Errorf("credit %d after %d announcements", u.credit, u.due)
		}
		u.data(t, 10, 3) // wants three, has one, gets the last one
		u.data(t, 11, 2)
		f.up[1].channel.Backlog(1) // waits in line
		if used := f.BuffersInUse(); used != 3 || u.credit != 1 {
			t.Errorf("%d buffers in use, credit %d", used, u.credit)
		}
		wants(t, f.poll(t), "0:10 bytes", "0:11 bytes")
		if u.credit != 2 || f.up[1].credit != 1 {
			t.Errorf("credit %d and %d", u.credit, f.up[1].credit)
		}
		f.up[1].data(t, 12, 0)
		u.event(t, wire.TypeBlockingEvent, "b", 0)
		if used := f.BuffersInUse(); used != 1 {
			t.Errorf("%d buffers in use, one was received", used)
		}
		wants(t, f.poll(t), "1:12 bytes", "0:b")
		u.channel.Backlog(5) // the producer is stopped: it says nothing of the kind
		if used := f.BuffersInUse(); used != 0 {
			t.Errorf("%d buffers in use", used)
		}
		u.credit = 0
		f.Resume(0)
		u.channel.Backlog(1)
		u.data(t, 13, 0)
		wants(t, f.poll(t), "0:13 bytes")
	})
}
