package gate_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// stream is a run of bytes of one channel, each with the base timestamp it came with.
type stream struct {
	bytes []byte
	bases []int64
}

func (s *stream) add(base int64, b []byte) {
	s.bytes = append(s.bytes, b...)
	for range b {
		s.bases = append(s.bases, base)
	}
}

// slice is the run [from, to).
func (s *stream) slice(from, to int) stream { return stream{s.bytes[from:to], s.bases[from:to]} }

func (s *stream) equal(o stream) bool {
	return bytes.Equal(s.bytes, o.bytes) && slices.Equal(s.bases, o.bases)
}

// snapshot is one checkpoint of a channel: what either side captured, and where in the
// channel's bytes consumer and producer were.
type snapshot struct {
	consumer, producer stream
	from, to           int
	recording          bool // the consumer has triggered, and its barrier has not come
	in                 bool // the barrier has come
	blocked            bool
}

// pair is a producer with two subpartitions and the consumer of both, one within the
// process and one over a connection that the test moves by hand. What it expects is
// told by positions alone: a checkpoint's state of a channel is what lies between the
// consumer's position when it triggered and the producer's when it sent the barrier.
type pair struct {
	t       *rapid.T
	out     *partition.ResultPartition
	gate    *gate.InputGate
	sub     [2]*partition.Subpartition
	without bool // there are no exclusive buffers

	wire    []message // on its way to channel 1
	left    [2]int    // bytes that left the subpartition
	credit  int
	number  uint32 // of the next message
	seen    [2]stream
	slow    bool // the consumer polls less than others do
	stopped bool // channel 1 was told to resume, and the subpartition does not know yet

	open    weir.Barrier // the checkpoint that the producer sent last
	over    bool         // it is complete or aborted
	current [2]snapshot
	phase   phase
	known   weir.CheckpointID // that the consumer has heard of
	aborted weir.CheckpointID
	done    map[weir.CheckpointID][2]snapshot
	timed   weir.CheckpointID // told to overtake by the producer
	pending map[weir.CheckpointID]int
	modes   map[string]int
}

type phase uint8

const (
	aligning  phase = iota
	timedOut        // before the first barrier
	triggered       // without all barriers
)

type message struct {
	h    wire.Buffer
	data []byte
}

// CreditDue implements [gate.Upstream].
func (p *pair) CreditDue() { p.credit += p.gate.Remote(1).Announce() }

// Resume implements [gate.Upstream].
func (p *pair) Resume() { p.stopped = true }

// BufferSize implements [gate.Upstream].
func (p *pair) BufferSize(n int) { p.sub[1].SetBufferSize(n) }

// Close implements [gate.Upstream].
func (p *pair) Close() {}

func newPair(t *rapid.T) *pair {
	p := &pair{t: t, over: true, done: map[weir.CheckpointID][2]snapshot{}, pending: map[weir.CheckpointID]int{}, modes: map[string]int{}}
	network := buffer.NewNetworkPool(400)
	pool, err := network.NewLocalPool(buffer.LocalOptions{Min: 3, Max: 300, Accounts: 2, PerAccount: 140})
	if err != nil {
		t.Fatal(err)
	}
	p.out = partition.New(partition.Options{Partitioning: partition.Custom, Subpartitions: 2, Pool: pool, Decided: func(id weir.CheckpointID) { p.pending[id]-- }})
	exclusive := rapid.IntRange(0, 2).Draw(t, "exclusive")
	p.without = exclusive == 0
	p.slow = rapid.Bool().Draw(t, "slow consumer")
	p.gate, err = gate.New(gate.Options{Channels: []gate.Channel{{}, {Remote: true}}, Exclusive: exclusive, Floating: 2, Network: network, Wake: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	p.sub = [2]*partition.Subpartition{p.out.Subpartition(0), p.out.Subpartition(1)}
	if _, err := p.sub[1].Attach(func(bool) {}); err != nil {
		t.Fatal(err)
	}
	p.gate.AttachLocal(0, p.sub[0])
	p.credit, _ = p.gate.Remote(1).Open(p)
	for i := range p.sub {
		p.gate.AnnounceBufferSize(i, 48)
	}
	// Near the end of the numbers, so that they wrap around.
	p.number = ^uint32(0) - uint32(rapid.IntRange(0, 20).Draw(t, "messages before the wrap"))
	p.gate.Remote(1).Expect(p.number)
	return p
}

func (p *pair) emit(t *rapid.T) {
	if p.out.Available() {
		size := rapid.IntRange(0, 150).Draw(t, "size")
		payload := bytes.Repeat([]byte{byte(len(p.seen[0].bytes) + 7*size)}, size)
		p.out.EmitTo(rapid.IntRange(0, 1).Draw(t, "to"), int64(rapid.IntRange(0, 1000).Draw(t, "timestamp")), payload)
	}
}

func (p *pair) flush(*rapid.T) { p.out.FlushAll() }

// capture is the producer's.
func (p *pair) capture(i int, base int64, b []byte) { p.current[i].producer.add(base, b) }

func (p *pair) barrier(t *rapid.T) {
	if !p.over {
		return
	}
	p.over = false
	p.open = weir.Barrier{ID: p.open.ID + 1}
	switch rapid.SampledFrom([]string{"aligned", "unaligned", "timeoutable", "timeoutable"}).Draw(t, "kind") {
	case "unaligned":
		p.open.Options.Alignment = weir.Unaligned
	case "timeoutable":
		p.open.Options.Timeout = time.Second
		p.pending[p.open.ID]++
	}
	p.current = [2]snapshot{}
	undecided := p.out.BroadcastBarrier(p.open, p.capture)
	if undecided != (p.open.Options.Timeout > 0) {
		t.Fatalf("undecided: %t, of %+v", undecided, p.open)
	}
	for i := range p.current {
		p.current[i].to = p.left[i] + int(p.sub[i].QueuedBytes())
	}
}

// timeout is the producer's.
func (p *pair) timeout(*rapid.T) {
	if !p.over && p.open.Options.Timeout > 0 && p.timed < p.open.ID {
		p.timed = p.open.ID
		p.out.TimeoutBarrier(p.open.ID, p.capture)
		if p.pending[p.open.ID] != 0 {
			p.t.Fatalf("barrier %d was timed out and is not decided", p.open.ID)
		}
	}
}

// abort is both sides', one after the other.
func (p *pair) abort(*rapid.T) {
	if p.over {
		return
	}
	p.out.AbortBarrier(p.open.ID)
	p.aborted = p.open.ID
	p.end()
	p.modes["aborted"]++
}

// send puts the next message of channel 1 onto the wire.
func (p *pair) send(*rapid.T) { p.sendOne() }

func (p *pair) sendOne() bool {
	if p.stopped {
		p.stopped = false
		if p.without {
			p.credit = 0
		}
		if _, err := p.sub[1].Resume(); err != nil {
			p.t.Fatal(err)
		}
	}
	x, outcome := p.sub[1].Poll(p.credit > 0)
	if outcome == partition.NeedsCredit && p.without {
		p.gate.Remote(1).Backlog(p.sub[1].Backlog())
	}
	if outcome != partition.Found {
		return false
	}
	m := message{h: wire.Buffer{Sequence: p.number, Type: x.Type, Backlog: uint32(x.Backlog)}, data: x.Event}
	if x.Type == wire.TypeData {
		m.h.Base, m.data = x.Data.Base(), bytes.Clone(x.Data.Bytes())
		x.Data.Release()
		p.credit--
		p.left[1] += len(m.data)
	}
	m.h.Payload = len(m.data)
	p.number++
	p.wire = append(p.wire, m)
	return true
}

func (p *pair) deliver(*rapid.T) { p.deliverOne() }

func (p *pair) deliverOne() bool {
	if len(p.wire) == 0 {
		return false
	}
	m := p.wire[0]
	p.wire = p.wire[1:]
	r := p.gate.Remote(1)
	if m.h.Type.IsEvent() {
		if err := r.DeliverEvent(m.h, m.data); err != nil {
			p.t.Fatal(err)
		}
		return true
	}
	b, err := r.Take(m.h)
	if err != nil {
		p.t.Fatal(err)
	}
	copy(b.Data(), m.data)
	r.Deliver(m.h, b)
	return true
}

func (p *pair) poll(t *rapid.T) {
	if !p.slow || rapid.IntRange(0, 4).Draw(t, "slowly") == 0 {
		p.pollOne(p.gate.Poll)
	}
}

func (p *pair) pollPriority(*rapid.T) { p.pollOne(p.gate.PollPriority) }

func (p *pair) pollOne(poll func() (gate.Item, bool, error)) bool {
	item, ok, err := poll()
	if err != nil {
		p.t.Fatal(err)
	}
	if !ok {
		return false
	}
	ch := item.Channel
	if item.Type == wire.TypeData {
		if c := &p.current[ch]; c.recording {
			c.consumer.add(item.Data.Base(), item.Data.Bytes())
		}
		p.seen[ch].add(item.Data.Base(), item.Data.Bytes())
		if ch == 0 {
			p.left[0] += item.Data.Len()
		}
		item.Data.Release()
		return true
	}
	e, err := wire.DecodeEvent(item.Event)
	if err != nil {
		p.t.Fatal(err)
	}
	b := weir.Barrier(e.(wire.Barrier))
	switch {
	case b.ID <= p.aborted:
		if item.Type.Blocks() {
			p.gate.Resume(ch)
		}
	case item.Announcement:
		if p.known = b.ID; p.phase != aligning {
			p.toHead(ch)
		}
	default:
		p.known = b.ID
		p.onBarrier(item, b)
	}
	return true
}

func (p *pair) onBarrier(item gate.Item, b weir.Barrier) {
	c := &p.current[item.Channel]
	if c.in || b.ID != p.open.ID {
		p.t.Fatalf("barrier %d on channel %d while %d is open", b.ID, item.Channel, p.open.ID)
	}
	if item.Type == wire.TypePriorityEvent && b.Options.Alignment != weir.Unaligned {
		p.t.Fatalf("%s overtook", b)
	}
	c.blocked = item.Type.Blocks()
	switch {
	case p.phase == triggered:
	case p.phase == timedOut || b.Options.Alignment == weir.Unaligned:
		p.trigger()
	}
	if p.phase == triggered {
		p.gate.CaptureQueued(item, c.consumer.add)
		c.recording = false
	}
	c.in = true
	if !p.current[1-item.Channel].in {
		return
	}
	if p.phase != triggered {
		p.trigger()
		p.modes["aligned"]++
	} else {
		p.modes["unaligned"]++
	}
	p.done[p.open.ID] = p.current
	p.end()
}

// trigger is the consumer's snapshot. Both channels are captured from here on, unless
// their barrier has come.
func (p *pair) trigger() {
	p.phase = triggered
	for i := range p.current {
		c := &p.current[i]
		c.from, c.recording = len(p.seen[i].bytes), !c.in
		p.toHead(i)
	}
}

func (p *pair) toHead(channel int) {
	if p.gate.ToHead(channel, p.open.ID) {
		p.modes[[]string{"moved local", "moved remote"}[channel]]++
	}
}

// consumerTimeout is the alignment timer.
func (p *pair) consumerTimeout(*rapid.T) {
	if p.over || p.phase != aligning || p.open.Options.Timeout == 0 || p.known != p.open.ID {
		return
	}
	p.phase = timedOut
	p.modes["timed out"]++
	for i := range p.current {
		p.toHead(i)
	}
	if p.current[0].in || p.current[1].in {
		p.trigger()
	}
}

// end lets blocked channels go on.
func (p *pair) end() {
	for i := range p.current {
		if p.current[i].blocked {
			p.gate.Resume(i)
		}
	}
	p.phase, p.over = aligning, true
	p.current = [2]snapshot{}
}

// finish lets everything arrive, and compares.
func (p *pair) finish() {
	p.out.FlushAll()
	for {
		moved := p.sendOne()
		moved = p.deliverOne() || moved
		moved = p.pollOne(p.gate.Poll) || moved
		if !moved && !p.stopped && !p.sendOne() && !p.pollOne(p.gate.Poll) {
			break
		}
	}
	if !p.over || p.out.QueuedBytes() != 0 || len(p.wire) != 0 {
		p.t.Fatalf("checkpoint %d is over: %t; %d bytes and %d messages are left", p.open.ID, p.over, p.out.QueuedBytes(), len(p.wire))
	}
	for id, both := range p.done {
		for i, c := range both {
			got := c.consumer
			got.add(0, nil)
			got.bytes, got.bases = append(got.bytes, c.producer.bytes...), append(got.bases, c.producer.bases...)
			if want := p.seen[i].slice(c.from, c.to); !got.equal(want) {
				p.t.Fatalf("checkpoint %d, channel %d: %d bytes of the consumer and %d of the producer, want %d\n%x %v\n%x %v",
					id, i, len(c.consumer.bytes), len(c.producer.bytes), len(want.bytes), got.bytes, got.bases, want.bytes, want.bases)
			}
		}
	}
	for id, n := range p.pending {
		if n != 0 {
			p.t.Fatalf("barrier %d: decided %d times", id, 1-n)
		}
	}
}

// action is one step, as often among the actions as it is likely.
type action struct {
	name string
	do   func(*pair, *rapid.T)
}

func (a action) String() string { return a.name }

var actions = slices.Concat(
	slices.Repeat([]action{{"emit", (*pair).emit}}, 8),
	slices.Repeat([]action{{"send", (*pair).send}, {"deliver", (*pair).deliver}, {"poll", (*pair).poll}}, 5),
	slices.Repeat([]action{{"barrier", (*pair).barrier}, {"flush", (*pair).flush}, {"poll priority", (*pair).pollPriority}}, 2),
	[]action{{"timeout", (*pair).timeout}, {"consumer timeout", (*pair).consumerTimeout}, {"consumer timeout", (*pair).consumerTimeout}},
	[]action{{"abort", func(p *pair, t *rapid.T) {
		if rapid.IntRange(0, 9).Draw(t, "abort") == 0 {
			p.abort(t)
		}
	}}},
)

// Whatever is emitted, sent, polled, timed out and aborted in whatever order: each byte
// that was in flight between the two snapshots is captured exactly once.
func TestInFlightDataIsCapturedOnce(t *testing.T) {
	t.Parallel()
	modes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		for range rapid.IntRange(50, 300).Draw(t, "steps") {
			rapid.SampledFrom(actions).Draw(t, "action").do(p, t)
		}
		p.finish()
		for mode, n := range p.modes {
			modes[mode] += n
		}
		p.out.Close()
		p.gate.Close()
	})
	for _, mode := range []string{"aligned", "unaligned", "aborted", "timed out", "moved local", "moved remote"} {
		if modes[mode] == 0 {
			t.Errorf("no checkpoint was %s", mode)
		}
	}
	t.Log(modes)
}
