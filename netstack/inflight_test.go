package netstack_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/netstacktest"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// chunk is a captured run of bytes.
type chunk struct {
	base int64
	data []byte
}

// place is one channel in one checkpoint.
type place struct {
	id                 weir.CheckpointID
	producer, consumer int
}

// capturing is the checkpoints of an exchange: who sent and processed what before, and
// what was captured in between.
type capturing struct {
	checkpoints weir.CheckpointID
	requested   atomic.Int64
	over        chan struct{} // closed when all are complete
	nodes       []*node

	mu struct {
		sync.Mutex
		complete           map[weir.CheckpointID]int
		consumer, producer map[place][]chunk
		sent               map[place]int64 // records that the producer had emitted; for consumer 0
		seen               map[place]int64 // the last record that the consumer had processed
		decided            map[weir.CheckpointID]int
		overtook           int // checkpoints that a consumer took unaligned
	}
}

func newCapturing(checkpoints weir.CheckpointID) *capturing {
	s := &capturing{checkpoints: checkpoints, over: make(chan struct{})}
	s.mu.complete, s.mu.decided = map[weir.CheckpointID]int{}, map[weir.CheckpointID]int{}
	s.mu.consumer, s.mu.producer = map[place][]chunk{}, map[place][]chunk{}
	s.mu.sent, s.mu.seen = map[place]int64{}, map[place]int64{}
	s.requested.Store(1)
	return s
}

// options are those of a checkpoint: the kinds take turns.
func (s *capturing) options(id weir.CheckpointID) weir.CheckpointOptions {
	switch id % 4 {
	case 0:
		return weir.CheckpointOptions{}
	case 1:
		return weir.CheckpointOptions{Alignment: weir.Unaligned}
	}
	return weir.CheckpointOptions{Timeout: time.Second}
}

// completed says that a consumer has everything of a checkpoint; after the last one the
// next is requested.
func (s *capturing) completed(id weir.CheckpointID, consumers int) {
	s.mu.Lock()
	s.mu.complete[id]++
	all := s.mu.complete[id] == consumers
	s.mu.Unlock()
	switch {
	case !all:
		return
	case id == s.checkpoints:
		close(s.over)
	default:
		s.requested.Store(int64(id) + 1)
	}
	for _, n := range s.nodes {
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

func (s *capturing) keep(m map[place][]chunk, p place, base int64, b []byte) {
	s.mu.Lock()
	m[p] = append(m[p], chunk{base, bytes.Clone(b)})
	s.mu.Unlock()
}

// produce emits until all checkpoints are complete.
func (s *capturing) produce(n *node, i int, r *rand.Rand) {
	out := n.Outputs[0]
	payload := make([]byte, 100_000)
	var id weir.CheckpointID
	capture := func(j int, base int64, b []byte) { s.keep(s.mu.producer, place{id, i, j}, base, b) }
	timeout := false
	for k := int64(0); ; {
		select {
		case <-s.over:
			out.BroadcastEvent(partition.NewEvent(wire.TypeEvent, wire.EndOfPartition{}))
			return
		default:
		}
		if timeout && r.IntN(4) == 0 {
			timeout = false
			out.TimeoutBarrier(id, capture)
		}
		if next := weir.CheckpointID(s.requested.Load()); next > id && r.IntN(4) == 0 {
			id = next
			s.mu.Lock()
			s.mu.sent[place{id, i, 0}] = k
			s.mu.Unlock()
			timeout = out.BroadcastBarrier(weir.Barrier{ID: id, Options: s.options(id)}, capture)
		}
		if !out.Available() {
			out.FlushAll()
			if !timeout && weir.CheckpointID(s.requested.Load()) == id {
				<-n.wake
			}
			continue
		}
		out.FlushIfRequested()
		x := uint64(i)<<32 | uint64(k)
		binary.LittleEndian.PutUint64(payload, x)
		size := 8 + r.IntN(3000)
		if r.IntN(50) == 0 {
			size = len(payload) // over several segments
		}
		out.Emit(hashOf(x), k, payload[:size])
		k++
	}
}

// capturer is a consumer that takes checkpoints.
type capturer struct {
	*consumer
	s         *capturing
	j         int // its number
	consumers int
	rand      *rand.Rand
	id        weir.CheckpointID // the one it is at
	in        []bool
	stopped   []bool
	recording []bool
	unaligned bool // triggered
	timed     bool // the first barrier triggers
}

func (c *capturer) run(ctx context.Context) error {
	g := c.node.Inputs[0]
	for c.ended < g.Channels() {
		poll := g.Poll
		if c.rand.IntN(3) == 0 {
			poll = g.PollPriority
		}
		item, ok, err := poll()
		if err == nil && !ok {
			item, ok, err = g.Poll()
		}
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
			if c.recording[item.Channel] {
				c.capture(item.Channel, item.Data.Base(), item.Data.Bytes())
			}
			err = c.data(item)
		default:
			err = c.onEvent(item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *capturer) capture(ch int, base int64, b []byte) {
	if len(b) > 0 {
		c.s.keep(c.s.mu.consumer, place{c.id, ch, c.j}, base, b)
	}
}

func (c *capturer) onEvent(item gate.Item) error {
	e, err := wire.DecodeEvent(item.Event)
	if err != nil {
		return err
	}
	g, ch := c.node.Inputs[0], item.Channel
	if _, ok := e.(wire.EndOfPartition); ok {
		g.End(ch)
		c.ended++
		return nil
	}
	b := weir.Barrier(e.(wire.Barrier))
	if item.Announcement {
		c.begin(b.ID)
		if c.timed || c.unaligned {
			g.ToHead(ch, b.ID)
		} else if c.rand.IntN(3) == 0 {
			c.timed = true
			for ch := range c.in {
				g.ToHead(ch, b.ID)
			}
			if slices.Contains(c.in, true) {
				c.trigger()
			}
		}
		return nil
	}
	c.begin(b.ID)
	if c.in[ch] || b.ID != c.id {
		return fmt.Errorf("channel %d: %s at %d", ch, b, c.id)
	}
	c.stopped[ch] = item.Type.Blocks()
	if !c.unaligned && (c.timed || b.Options.Alignment == weir.Unaligned) {
		c.trigger()
	}
	if c.unaligned {
		g.CaptureQueued(item, func(base int64, b []byte) { c.capture(ch, base, b) })
		c.recording[ch] = false
	}
	c.in[ch] = true
	if !slices.Contains(c.in, false) {
		c.end()
	}
	return nil
}

// begin makes a checkpoint the current one.
func (c *capturer) begin(id weir.CheckpointID) {
	if id > c.id {
		c.id, c.timed, c.unaligned = id, false, false
		clear(c.in)
		clear(c.stopped)
	}
}

// trigger is the snapshot: half records first, then what is polled.
func (c *capturer) trigger() {
	c.unaligned = true
	c.position()
	for ch := range c.in {
		if c.recording[ch] = !c.in[ch]; c.recording[ch] {
			begun, base, _, _ := c.cutters[ch].Rest()
			c.capture(ch, base, begun)
			c.node.Inputs[0].ToHead(ch, c.id)
		}
	}
	c.s.mu.Lock()
	c.s.mu.overtook++
	c.s.mu.Unlock()
}

// position notes what the consumer has processed.
func (c *capturer) position() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for ch, last := range c.last {
		c.s.mu.seen[place{c.id, ch, c.j}] = last
	}
}

func (c *capturer) end() {
	if !c.unaligned {
		c.position()
	}
	for ch, stopped := range c.stopped {
		if stopped {
			c.node.Inputs[0].Resume(ch)
		}
	}
	c.s.completed(c.id, c.consumers)
}

// check compares, for every checkpoint and channel, the records in what was captured
// with those that were emitted before the barrier and not processed at the snapshot.
func (s *capturing) check(t *testing.T, producers, consumers int) (bytes int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := weir.CheckpointID(1); id <= s.checkpoints; id++ {
		for i := range producers {
			for j := range consumers {
				p := place{id, i, j}
				var want []uint64
				for k := s.mu.seen[p] + 1; k < s.mu.sent[place{id, i, 0}]; k++ {
					x := uint64(i)<<32 | uint64(k)
					if weir.KeyGroupOwner(weir.KeyGroupOf(hashOf(x), 128), 128, consumers) == j {
						want = append(want, x)
					}
				}
				got, n := records(t, slices.Concat(s.mu.consumer[p], s.mu.producer[p]))
				bytes += n
				if !slices.Equal(got, want) {
					t.Errorf("checkpoint %d, %d to %d: captured %x, want %x", id, i, j, got, want)
				}
			}
		}
	}
	return bytes
}

// records cuts chunks into whole records.
func records(t *testing.T, chunks []chunk) (numbers []uint64, bytes int) {
	t.Helper()
	c := wire.Cutter{Keyed: true}
	for _, x := range chunks {
		bytes += len(x.data)
		c.Feed(x.data, x.base)
		for {
			var e wire.Element
			ok, err := c.Next(&e)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			n := binary.LittleEndian.Uint64(e.Payload)
			if e.Timestamp != int64(n&0xFFFFFFFF) {
				t.Errorf("record %x has timestamp %d", n, e.Timestamp)
			}
			numbers = append(numbers, n)
		}
	}
	if begun, _, left, _ := c.Rest(); len(begun)+len(left) > 0 {
		t.Errorf("%d bytes of a record are left", len(begun)+len(left))
	}
	return numbers, bytes
}

// Over real stacks, with local and remote channels: what is in flight is in the
// checkpoint, once and whole, whoever times out.
func TestCheckpointsHoldWhatIsInFlight(t *testing.T) {
	t.Parallel()
	for seed, buffers := range []netstack.BufferOptions{smallest, netstack.DefaultBuffers(), withoutExclusive} {
		for _, on := range [][]int{{0, 0}, {0, 1}} { // all local; half of them remote
			t.Run(fmt.Sprintf("%d exclusive, stacks %v", buffers.Exclusive, on), func(t *testing.T) {
				t.Parallel()
				x := &exchange{
					net: netstacktest.New(t, 2, nil, nil), partitioning: partition.Hash,
					from: vertex{0, []int{0, 1}}, to: vertex{1, on}, buffers: buffers,
				}
				holdsWhatIsInFlight(t, x, uint64(seed))
			})
		}
	}
}

func holdsWhatIsInFlight(t *testing.T, x *exchange, seed uint64) {
	s := newCapturing(24)
	g := group.New(context.Background(), "in flight")
	var nodes []*node
	for j := range x.to.on {
		nodes = append(nodes, x.openConsumer(t, j))
	}
	for i := range x.from.on {
		n := x.openProducer(t, i)
		nodes = append(nodes, n)
		s.nodes = append(s.nodes, n)
	}
	for _, n := range nodes {
		start(t, n)
	}
	for j, n := range nodes[:len(x.to.on)] {
		k := len(x.from.on)
		c := &capturer{
			consumer: newConsumer(n, true), s: s, j: j, consumers: len(x.to.on), rand: rand.New(rand.NewPCG(seed, uint64(j))),
			in: make([]bool, k), stopped: make([]bool, k), recording: make([]bool, k),
		}
		c.keep = false
		g.Go("consumer", c.run)
	}
	for i, n := range s.nodes {
		r := rand.New(rand.NewPCG(seed, uint64(100+i)))
		g.Go("producer", func(context.Context) error { s.produce(n, i, r); return nil })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	captured := s.check(t, len(x.from.on), len(x.to.on))
	if s.mu.overtook < 12 || captured == 0 {
		t.Errorf("%d snapshots were unaligned, %d bytes captured", s.mu.overtook, captured)
	}
	for _, n := range nodes {
		n.Close()
	}
}

// What a gate announces reaches the producer, in this process or another, also if it
// was announced before there was a channel; and the gate knows what is on its way.
func TestBufferSizesTravelUpstream(t *testing.T) {
	for _, on := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			x := &exchange{
				net: netstacktest.New(t, 2, nil, nil), partitioning: partition.Forward,
				from: vertex{0, []int{0}}, to: vertex{1, []int{on}}, buffers: netstack.DefaultBuffers(),
			}
			c, p := x.openConsumer(t, 0), x.openProducer(t, 0)
			g, out := c.Inputs[0], p.Outputs[0]
			lengths := func() (n []int) {
				out.FlushAll()
				for {
					synctest.Wait()
					item, ok, err := g.Poll()
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						return n
					}
					n = append(n, item.Data.Len())
					item.Data.Release()
				}
			}
			g.AnnounceBufferSize(0, 100)
			start(t, c, p)
			synctest.Wait()
			for range 5 {
				out.Emit(0, wire.NoTimestamp, make([]byte, 58))
			}
			out.FlushAll()
			synctest.Wait()
			if n := g.InFlight(); n != 3 {
				t.Errorf("%d segments in flight", n)
			}
			if got := fmt.Sprint(lengths()); got != "[100 100 100]" {
				t.Errorf("segments of %s bytes", got)
			}
			g.AnnounceBufferSize(0, 250)
			synctest.Wait()
			for range 5 {
				out.Emit(0, wire.NoTimestamp, make([]byte, 58))
			}
			if got := fmt.Sprint(lengths()); got != "[250 50]" {
				t.Errorf("segments of %s bytes", got)
			}
			if n := g.InFlight(); n != 0 {
				t.Errorf("%d segments in flight", n)
			}
			c.Close()
			p.Close()
		})
	}
}
