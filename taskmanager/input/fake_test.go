package input_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
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
}

func newGate(t testing.TB, channels int) *fakeGate {
	return &fakeGate{t: t, queues: make([][]gate.Item, channels), blocked: make([]bool, channels), ended: make([]bool, channels)}
}

func (g *fakeGate) Poll() (gate.Item, bool, error) {
	if g.err != nil {
		return gate.Item{}, false, g.err
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
	s.metrics = append(s.metrics, m)
	if s.onTrigger != nil {
		s.onTrigger()
	}
	return s.failWith
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
