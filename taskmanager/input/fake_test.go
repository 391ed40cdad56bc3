package input_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/taskmanager/barrier"
	"github.com/weirflow/weir/taskmanager/input"
)

// fakeGate is a gate whose channels hold what a test puts in. Released segments are
// overwritten.
type fakeGate struct {
	t        testing.TB
	queues   [][]gate.Item
	blocked  []bool
	ended    []bool
	turn     int
	resumed  []int
	released int
	err      error
	// Priority items, and what each channel's newest barrier overtook.
	priority   [][]gate.Item
	overtaken  [][]gate.Item
	overtaking []weir.CheckpointID
}

func newGate(t testing.TB, channels int) *fakeGate {
	return &fakeGate{t: t, queues: make([][]gate.Item, channels), blocked: make([]bool, channels), ended: make([]bool, channels),
		priority: make([][]gate.Item, channels), overtaken: make([][]gate.Item, channels), overtaking: make([]weir.CheckpointID, channels)}
}

// PollPriority takes the next priority item.
func (g *fakeGate) PollPriority() (gate.Item, bool, error) {
	for ch := range g.priority {
		if len(g.priority[ch]) > 0 && !g.blocked[ch] {
			item := g.priority[ch][0]
			g.priority[ch] = g.priority[ch][1:]
			g.blocked[ch] = item.Type.Blocks()
			return item, true, g.err
		}
	}
	return gate.Item{}, false, g.err
}

// ToHead moves a barrier before all that is queued.
func (g *fakeGate) ToHead(ch int, id weir.CheckpointID) bool {
	for i, item := range g.queues[ch] {
		e, _ := wire.DecodeEvent(item.Event)
		if b, ok := e.(wire.Barrier); ok && b.ID == id && item.Type == wire.TypeAnnouncedEvent {
			g.overtaken[ch] = slices.Clone(g.queues[ch][:i])
			g.queues[ch] = slices.Delete(g.queues[ch], i, i+1)
			g.priority[ch] = append(g.priority[ch], item)
			return true
		}
	}
	return false
}

// CaptureQueued hands out what the newest barrier overtook.
func (g *fakeGate) CaptureQueued(barrier gate.Item, take func(base int64, b []byte)) {
	for _, item := range g.overtaken[barrier.Channel] {
		if item.Type == wire.TypeData {
			take(item.Data.Base(), item.Data.Bytes())
		}
	}
}

// Overtaking is what a test says.
func (g *fakeGate) Overtaking(ch int) weir.CheckpointID { return g.overtaking[ch] }

// overtakes queues an unaligned barrier before what is queued.
func (g *fakeGate) overtakes(ch int, id weir.CheckpointID) {
	g.overtaken[ch] = slices.Clone(g.queues[ch])
	g.priority[ch] = append(g.priority[ch], gate.Item{Channel: ch, Type: wire.TypePriorityEvent, Event: wire.AppendEvent(nil,
		wire.Barrier{ID: id, Options: weir.CheckpointOptions{Alignment: weir.Unaligned}})})
}

// announces queues a timeoutable barrier, and its announcement before what is queued.
func (g *fakeGate) announces(ch int, id weir.CheckpointID, timeout time.Duration) {
	b := wire.Barrier{ID: id, Options: weir.CheckpointOptions{Timeout: timeout}}
	g.event(ch, wire.TypeAnnouncedEvent, b)
	g.priority[ch] = append(g.priority[ch], gate.Item{Channel: ch, Type: wire.TypePriorityEvent, Event: wire.AppendEvent(nil, b), Announcement: true})
}

func (g *fakeGate) Poll() (gate.Item, bool, error) {
	if g.err != nil {
		return gate.Item{}, false, g.err
	}
	if item, ok, err := g.PollPriority(); ok || err != nil {
		return item, ok, err
	}
	for range g.queues {
		ch := g.turn
		g.turn = (g.turn + 1) % len(g.queues)
		if g.blocked[ch] || len(g.queues[ch]) == 0 {
			continue
		}
		item := g.queues[ch][0]
		g.queues[ch] = g.queues[ch][1:]
		g.blocked[ch] = item.Type.Blocks()
		return item, true, nil
	}
	return gate.Item{}, false, nil
}

func (g *fakeGate) Resume(ch int) {
	if !g.blocked[ch] || g.ended[ch] {
		g.t.Errorf("resumed channel %d, which was not blocked", ch)
	}
	g.blocked[ch] = false
	g.resumed = append(g.resumed, ch)
}

func (g *fakeGate) End(ch int) {
	if g.ended[ch] {
		g.t.Errorf("channel %d ended twice", ch)
	}
	g.ended[ch] = true
}

func (g *fakeGate) Channels() int { return len(g.queues) }

// Recycle overwrites a segment that nobody holds any more.
func (g *fakeGate) Recycle(b *buffer.Buffer) {
	g.released++
	for i := range b.Data() {
		b.Data()[i] = 0xDB
	}
}

func (g *fakeGate) data(ch int, b []byte) {
	w := buffer.Wrap(append([]byte(nil), b...))
	w.SetRecycler(g)
	g.queues[ch] = append(g.queues[ch], gate.Item{Channel: ch, Type: wire.TypeData, Data: w.Own()})
}

func (g *fakeGate) event(ch int, typ wire.DataType, e wire.Event) {
	g.queues[ch] = append(g.queues[ch], gate.Item{Channel: ch, Type: typ, Event: wire.AppendEvent(nil, e)})
}

func (g *fakeGate) barrier(ch int, id weir.CheckpointID, age time.Duration) {
	g.event(ch, wire.TypeBlockingEvent, wire.Barrier{ID: id, Age: age})
}

func (g *fakeGate) end(ch int) {
	g.event(ch, wire.TypeEvent, wire.EndOfData{Drain: true})
	g.event(ch, wire.TypeEvent, wire.EndOfPartition{})
}

// record returns the bytes of a record.
func record(keyed bool, hash uint64, ts int64, payload []byte) []byte {
	var head [wire.MaxElementHead]byte
	n := wire.PutRecordHead(head[:], keyed, hash, 0, ts, len(payload))
	return append(append([]byte(nil), head[:n]...), payload...)
}

// fakeSink writes down what it is given.
type fakeSink struct {
	log       []string
	payloads  [][]byte
	batches   []int
	suspendAt int // suspend before this record of a batch; 0: never
	process   func(b *operator.Batch) error
	metrics   []weir.CheckpointMetrics
	onTrigger func()
	failWith  error
	captured  map[[2]int][]chunk // by input and channel
}

// chunk is what was captured at a time.
type chunk struct {
	base int64
	b    []byte
}

func (s *fakeSink) Process(b *operator.Batch) error {
	if s.process != nil {
		return s.process(b)
	}
	if b.Next == 0 {
		s.batches = append(s.batches, b.N)
	}
	stop := b.N
	if s.suspendAt > 0 && b.Next < s.suspendAt {
		stop = min(stop, s.suspendAt)
	}
	for ; b.Next < stop; b.Next++ {
		p := b.Payload[b.Next]
		s.log = append(s.log, fmt.Sprintf("%d:%s", b.Input, p[:min(len(p), 8)]))
		s.payloads = append(s.payloads, p)
	}
	return s.failWith
}

func (s *fakeSink) Watermark(w weir.Watermark) error { s.add("watermark %d", w); return nil }
func (s *fakeSink) Status(idle bool) error           { s.add("idle %v", idle); return nil }
func (s *fakeSink) EndOfInput(i int) error           { s.add("end of input %d", i); return nil }
func (s *fakeSink) Abort(id weir.CheckpointID, r weir.FailureReason) {
	s.add("abort %d %s", id, r)
}

func (s *fakeSink) Trigger(_ context.Context, b weir.Barrier, m weir.CheckpointMetrics) error {
	s.add("trigger %d", b.ID)
	if b.Options.Alignment == weir.Unaligned {
		s.log[len(s.log)-1] += " unaligned"
	}
	s.metrics = append(s.metrics, m)
	if s.onTrigger != nil {
		s.onTrigger()
	}
	return s.failWith
}

func (s *fakeSink) Capture(id weir.CheckpointID, input, channel int, base int64, b []byte) {
	if s.captured == nil {
		s.captured = map[[2]int][]chunk{}
	}
	at := [2]int{input, channel}
	s.captured[at] = append(s.captured[at], chunk{base, bytes.Clone(b)})
}

func (s *fakeSink) Captured(id weir.CheckpointID, _ barrier.Alignment) { s.add("captured %d", id) }
func (s *fakeSink) ArmTimer(id weir.CheckpointID, d time.Duration)     { s.add("arm %d %s", id, d) }
func (s *fakeSink) Hurry()                                             {}
func (s *fakeSink) CancelTimer(id weir.CheckpointID)                   { s.add("cancel timer %d", id) }

// inFlight cuts what was captured of a channel into payloads.
func (s *fakeSink) inFlight(t testing.TB, input, channel int) (all []string) {
	t.Helper()
	c := wire.Cutter{}
	for _, x := range s.captured[[2]int{input, channel}] {
		c.Feed(x.b, x.base)
		var e wire.Element
		for {
			ok, err := c.Next(&e)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if !e.Kind.IsRecord() {
				all = append(all, fmt.Sprintf("%s@%d", e.Kind, e.Timestamp))
				continue
			}
			all = append(all, fmt.Sprintf("%s@%d", e.Payload, e.Timestamp))
		}
	}
	if begun, _, _, _ := c.Rest(); len(begun) > 0 {
		all = append(all, fmt.Sprintf("half of %d bytes", len(begun)))
	}
	return all
}

func (s *fakeSink) add(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func newInput(s input.Sink, borrow bool, gates ...*fakeGate) *input.CheckpointedGate {
	o := input.Options{Sink: s, Borrow: borrow, AfterTasksFinish: true, Now: time.Now}
	for _, g := range gates {
		o.Gates = append(o.Gates, g)
		o.Keyed = append(o.Keyed, false)
	}
	return input.New(o)
}

// drain polls until there is nothing to do.
func drain(t testing.TB, in *input.CheckpointedGate) {
	t.Helper()
	for {
		worked, err := in.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !worked {
			return
		}
	}
}
