package netstack_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/netstacktest"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// smallest are the smallest legal pools (DECISIONS 23).
var smallest = netstack.BufferOptions{Timeout: 5 * time.Millisecond, Exclusive: 1, Floating: 1, PerOutput: 1}

// withoutExclusive is all remote channels of a gate living on one segment.
var withoutExclusive = netstack.BufferOptions{Timeout: 5 * time.Millisecond, Floating: 1, PerOutput: 1}

// vertex describes the subtasks of one side of an exchange: on which stack each runs.
type vertex struct {
	index int
	on    []int
}

// exchange is one edge between two vertices of a job.
type exchange struct {
	net          *netstacktest.Net
	job          byte
	attempt      int
	partitioning partition.Partitioning
	from, to     vertex
	buffers      netstack.BufferOptions
}

func (x *exchange) producer(i int) weir.AttemptID {
	return netstacktest.Attempt(x.job, x.from.index, i, max(1, x.attempt))
}

func (x *exchange) consumer(i int) weir.AttemptID {
	return netstacktest.Attempt(x.job, x.to.index, i, max(1, x.attempt))
}

// node is a task as far as the stack sees it.
type node struct {
	*netstack.TaskIO
	wake chan struct{}
}

func (x *exchange) open(t testing.TB, on int, spec netstack.TaskSpec) *node {
	t.Helper()
	n := &node{wake: make(chan struct{}, 1)}
	spec.Buffers = x.buffers
	spec.Wake = func() {
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
	io, err := x.net.Stacks[on].OpenTask(spec)
	if err != nil {
		t.Fatal(err)
	}
	n.TaskIO = io
	t.Cleanup(func() { io.Close() })
	return n
}

func (x *exchange) openProducer(t testing.TB, i int) *node {
	t.Helper()
	o := netstack.OutputSpec{Edge: 7, Partitioning: x.partitioning, MaxParallelism: 128}
	for j, on := range x.to.on {
		if x.partitioning != partition.Forward || j == i {
			o.Consumers = append(o.Consumers, netstack.Consumer{Attempt: x.consumer(j), At: x.net.At[on]})
		}
	}
	return x.open(t, x.from.on[i], netstack.TaskSpec{Attempt: x.producer(i), Outputs: []netstack.OutputSpec{o}})
}

func (x *exchange) openConsumer(t testing.TB, j int) *node {
	t.Helper()
	in := netstack.InputSpec{Edge: 7}
	for i, on := range x.from.on {
		c := netstack.ChannelSpec{Producer: x.producer(i), Subpartition: j, At: x.net.At[on]}
		if x.partitioning == partition.Forward {
			if i != j {
				continue
			}
			c.Subpartition = 0
		}
		in.Channels = append(in.Channels, c)
	}
	return x.open(t, x.to.on[j], netstack.TaskSpec{Attempt: x.consumer(j), Inputs: []netstack.InputSpec{in}})
}

// produce emits count records: 8 bytes with i·2^32 + the record's number, and filler up
// to size bytes; a barrier after every so many.
func produce(n *node, i, count, size, barrierEvery int) {
	out := n.Outputs[0]
	payload := make([]byte, max(8, size))
	for k := range count {
		for !out.Available() {
			out.FlushAll()
			<-n.wake
		}
		out.FlushIfRequested()
		x := uint64(i)<<32 | uint64(k)
		binary.LittleEndian.PutUint64(payload, x)
		out.Emit(hashOf(x), int64(k), payload[:max(8, size-k%7)])
		if barrierEvery > 0 && (k+1)%barrierEvery == 0 {
			b := weir.Barrier{ID: weir.CheckpointID((k + 1) / barrierEvery), Options: weir.CheckpointOptions{Location: "chk"}}
			out.BroadcastEvent(partition.NewEvent(wire.TypeBlockingEvent, wire.Barrier(b)))
		}
	}
	out.BroadcastEvent(partition.NewEvent(wire.TypeEvent, wire.EndOfPartition{}))
}

func hashOf(x uint64) uint64 { return (x + 1) * 0x9E3779B97F4A7C15 }

// consumed is what a consumer saw.
type consumed struct {
	records  []int    // per channel
	numbers  []uint64 // all, if kept
	barriers int      // alignments completed
}

// consumer reads a gate to its end, aligning barriers.
type consumer struct {
	node     *node
	keyed    bool
	keep     bool
	between  func() // called after each item
	seen     consumed
	cutters  []wire.Cutter
	last     []int64 // the number seen last, per channel
	blocked  map[int]bool
	ended    int
	expected weir.CheckpointID
}

func newConsumer(n *node, keyed bool) *consumer {
	k := n.Inputs[0].Channels()
	c := &consumer{node: n, keyed: keyed, keep: true, cutters: make([]wire.Cutter, k), last: make([]int64, k), blocked: map[int]bool{}, expected: 1}
	c.seen.records = make([]int, k)
	for i := range c.cutters {
		c.cutters[i] = wire.Cutter{Keyed: keyed, Reuse: true}
		c.last[i] = -1
	}
	return c
}

func (c *consumer) run(ctx context.Context) error {
	g := c.node.Inputs[0]
	for c.ended < g.Channels() {
		item, ok, err := g.Poll()
		switch {
		case err != nil:
			return err
		case !ok:
			select {
			case <-c.node.wake:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		case item.Type == wire.TypeData:
			err = c.data(item)
		default:
			err = c.event(item)
		}
		if err != nil {
			return err
		}
		if c.between != nil {
			c.between()
		}
	}
	return nil
}

func (c *consumer) data(item gate.Item) error {
	defer item.Data.Release()
	ch := item.Channel
	if c.blocked[ch] {
		return fmt.Errorf("data on blocked channel %d", ch)
	}
	var e wire.Element
	c.cutters[ch].Feed(item.Data.Bytes(), item.Data.Base())
	for {
		ok, err := c.cutters[ch].Next(&e)
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		x := binary.LittleEndian.Uint64(e.Payload)
		k := int64(x & 0xFFFFFFFF)
		switch {
		case k <= c.last[ch]:
			return fmt.Errorf("channel %d: record %d after %d", ch, k, c.last[ch])
		case e.Timestamp != k:
			return fmt.Errorf("record %d has timestamp %d", k, e.Timestamp)
		case c.keyed && e.Hash != hashOf(x):
			return fmt.Errorf("record %d has hash %x", k, e.Hash)
		}
		c.last[ch] = k
		c.seen.records[ch]++
		if c.keep {
			c.seen.numbers = append(c.seen.numbers, x)
		}
	}
}

func (c *consumer) event(item gate.Item) error {
	e, err := wire.DecodeEvent(item.Event)
	if err != nil {
		return err
	}
	g := c.node.Inputs[0]
	switch e := e.(type) {
	case wire.Barrier:
		if e.ID != c.expected || c.blocked[item.Channel] {
			return fmt.Errorf("channel %d: %s, expected %d", item.Channel, e, c.expected)
		}
		if begun, _, _, _ := c.cutters[item.Channel].Rest(); len(begun) > 0 {
			return fmt.Errorf("channel %d: barrier inside a record", item.Channel)
		}
		c.blocked[item.Channel] = true
		if len(c.blocked) == g.Channels()-c.ended {
			c.seen.barriers++
			c.expected++
			for ch := range c.blocked {
				g.Resume(ch)
			}
			clear(c.blocked)
		}
	case wire.EndOfPartition:
		g.End(item.Channel)
		c.ended++
	default:
		return fmt.Errorf("unexpected %s", e)
	}
	return nil
}

// run runs the whole exchange and returns what each consumer saw.
func (x *exchange) run(t testing.TB, count, size, barrierEvery int, start func(nodes []*node)) []consumed {
	t.Helper()
	before := usedBuffers(x.net)
	g := group.New(context.Background(), "exchange")
	var consumers []*consumer
	var nodes []*node
	for j := range x.to.on {
		n := x.openConsumer(t, j)
		nodes = append(nodes, n)
		consumers = append(consumers, newConsumer(n, x.partitioning == partition.Hash))
	}
	for i := range x.from.on {
		nodes = append(nodes, x.openProducer(t, i))
	}
	if start != nil {
		start(nodes)
	} else {
		for _, n := range nodes {
			if err := n.Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, n := range nodes[len(x.to.on):] {
		g.Go("producer", func(context.Context) error { produce(n, i, count, size, barrierEvery); return nil })
	}
	for _, c := range consumers {
		g.Go("consumer", c.run)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	var seen []consumed
	for _, c := range consumers {
		seen = append(seen, c.seen)
	}
	for _, n := range nodes {
		n.Close()
	}
	for i, after := range usedBuffers(x.net) {
		if after > before[i] {
			t.Errorf("stack %d: %d buffers in use, before %d", i, after, before[i])
		}
	}
	return seen
}

func usedBuffers(net *netstacktest.Net) (used []int) {
	for _, s := range net.Stacks {
		used = append(used, s.Stats().UsedBuffers)
	}
	return used
}

func TestExchange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		partitioning partition.Partitioning
		from, to     []int
		size         int
	}{
		{"local hash", partition.Hash, []int{0, 0}, []int{0, 0, 0}, 100},
		{"remote hash", partition.Hash, []int{0, 0}, []int{1, 1, 1}, 100},
		{"remote hash, dialled by the consumer", partition.Hash, []int{1, 1}, []int{0, 0}, 100},
		{"mixed hash", partition.Hash, []int{0, 1, 2}, []int{0, 1, 2}, 300},
		{"mixed rebalance", partition.Rebalance, []int{0, 1}, []int{2, 1}, 100},
		{"forward", partition.Forward, []int{0, 1, 0}, []int{0, 0, 1}, 1000},
		{"records over several segments", partition.Hash, []int{0, 1}, []int{1, 0}, 100_000},
	} {
		for _, buffers := range []netstack.BufferOptions{smallest, netstack.DefaultBuffers(), withoutExclusive} {
			t.Run(fmt.Sprintf("%s, %d exclusive", c.name, buffers.Exclusive), func(t *testing.T) {
				t.Parallel()
				x := &exchange{
					net:          netstacktest.New(t, 3, nil, nil),
					partitioning: c.partitioning,
					from:         vertex{0, c.from}, to: vertex{1, c.to},
					buffers: buffers,
				}
				count := max(60, 1_000_000/c.size)
				checkAll(t, x, x.run(t, count, c.size, count/5, nil), count)
			})
		}
	}
}

// checkAll says whether every record arrived once, and at its owner.
func checkAll(t testing.TB, x *exchange, seen []consumed, count int) {
	t.Helper()
	got := map[uint64]bool{}
	for j, s := range seen {
		if s.barriers != 5 {
			t.Errorf("consumer %d: %d barriers", j, s.barriers)
		}
		for _, n := range s.numbers {
			if got[n] {
				t.Fatalf("record %x twice", n)
			}
			got[n] = true
			group := weir.KeyGroupOf(hashOf(n), 128)
			if owner := weir.KeyGroupOwner(group, 128, len(x.to.on)); x.partitioning == partition.Hash && owner != j {
				t.Fatalf("record %x at consumer %d, owner is %d", n, j, owner)
			}
		}
	}
	if want := count * len(x.from.on); len(got) != want {
		t.Errorf("%d records, want %d", len(got), want)
	}
}

func TestConsumersMayComeBeforeOrAfterProducers(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		x := &exchange{
			net:          netstacktest.New(t, 2, nil, nil),
			partitioning: partition.Hash,
			from:         vertex{0, []int{0, 1}}, to: vertex{1, []int{0, 1}},
			buffers: smallest,
		}
		seen := x.run(t, 1000, 100, 200, func(nodes []*node) {
			for i := range nodes {
				if reverse {
					i = len(nodes) - 1 - i
				}
				if err := nodes[i].Start(); err != nil {
					t.Fatal(err)
				}
			}
		})
		checkAll(t, x, seen, 1000)
	}
}

var errPlanned = errors.New("planned")

// A channel whose consumer does not poll fills up and stops its producer; the other
// job on the same connection gets all of its data all the same.
func TestBlockedChannelLeavesTheOthersRunning(t *testing.T) {
	t.Parallel()
	net := netstacktest.New(t, 2, nil, nil)
	job := func(j byte) *exchange {
		return &exchange{net: net, job: j, partitioning: partition.Forward, from: vertex{0, []int{0}}, to: vertex{1, []int{1}}, buffers: smallest}
	}
	stuck := job(1)
	stuckConsumer, stuckProducer := stuck.openConsumer(t, 0), stuck.openProducer(t, 0)
	for _, n := range []*node{stuckConsumer, stuckProducer} {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	stuckConsumer.Inputs[0].Poll() // asks to be woken
	g := group.New(context.Background(), "stuck")
	var emitted atomic.Int64
	g.Go("producer", func(context.Context) error {
		for !stopped(stuckProducer) {
			stuckProducer.Outputs[0].Emit(0, 0, make([]byte, 1000))
			emitted.Add(1)
		}
		return nil
	})
	<-stuckConsumer.wake // its first data is there; nobody polls it

	running := job(2)
	run := func() {
		running.attempt++
		c, p := running.openConsumer(t, 0), running.openProducer(t, 0)
		c.Start()
		p.Start()
		r := group.New(context.Background(), "running")
		r.Go("producer", func(context.Context) error { produce(p, 0, 5000, 100, 1000); return nil })
		cons := newConsumer(c, false)
		r.Go("consumer", cons.run)
		if err := r.Wait(); err != nil {
			t.Fatal(err)
		}
		if cons.seen.records[0] != 5000 || cons.seen.barriers != 5 {
			t.Errorf("running job saw %d records and %d barriers", cons.seen.records[0], cons.seen.barriers)
		}
		c.Close()
		p.Close()
	}
	run()
	run()
	if n := net.Stacks[0].Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
	stuckProducer.Cancel(errPlanned)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	// Two segments at the producer, one exclusive and one floating at the consumer.
	if n := emitted.Load(); n < 60 || n > 10*33*20 {
		t.Errorf("stuck producer emitted %d records of 1000 bytes", n)
	}
	stuckProducer.Close()
	stuckConsumer.Close()
}

func stopped(n *node) bool { return n.Outputs[0].Ended() }
