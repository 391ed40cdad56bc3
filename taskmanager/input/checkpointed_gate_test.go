package input_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/taskmanager/input"
)

func TestRecordsComeInBatchesOfAtMost64(t *testing.T) {
	t.Parallel()
	g, s := newGate(t, 1), &fakeSink{}
	var segment []byte
	for i := range 150 {
		segment = append(segment, record(false, 0, wire.NoTimestamp, fmt.Appendf(nil, "r%d", i))...)
	}
	g.data(0, segment)
	in := newInput(s, false, g)
	drain(t, in)
	if want := []int{64, 64, 22}; !slices.Equal(s.batches, want) {
		t.Errorf("batches %v, want %v", s.batches, want)
	}
	if in.Records() != 150 || in.Bytes() != int64(len(segment)) {
		t.Errorf("%d records, %d bytes; want 150 and %d", in.Records(), in.Bytes(), len(segment))
	}
	if g.released != 1 {
		t.Errorf("%d segments were given back, want 1", g.released)
	}
}

func TestSuspendedBatchIsFinishedFirst(t *testing.T) {
	t.Parallel()
	g, s := newGate(t, 2), &fakeSink{suspendAt: 1}
	g.data(0, append(record(false, 0, 1, []byte("a")), record(false, 0, 1, []byte("b"))...))
	g.data(1, record(false, 0, 1, []byte("c")))
	in := newInput(s, false, g)
	if worked, err := in.Poll(t.Context()); !worked || err != nil {
		t.Fatal(worked, err)
	}
	if in.Records() != 1 {
		t.Errorf("%d records counted while the batch is suspended, want 1", in.Records())
	}
	drain(t, in)
	if want := []string{"0:a", "0:b", "0:c"}; !slices.Equal(s.log, want) {
		t.Errorf("got %v, want %v", s.log, want)
	}
}

func TestSnapshotComesAfterAllBeforeItAndBeforeAnyAfterIt(t *testing.T) {
	t.Parallel()
	a, b := newGate(t, 1), newGate(t, 1)
	s := &fakeSink{}
	s.onTrigger = func() {
		if len(a.resumed)+len(b.resumed) > 0 {
			t.Error("a channel was resumed before the trigger")
		}
	}
	a.data(0, record(false, 0, 1, []byte("a1")))
	a.barrier(0, 7, 0)
	a.data(0, record(false, 0, 1, []byte("a2")))
	b.data(0, record(false, 0, 1, []byte("b1")))
	b.data(0, record(false, 0, 1, []byte("b2")))
	b.data(0, record(false, 0, 1, []byte("b3")))
	b.barrier(0, 7, 0)
	drain(t, newInput(s, false, a, b))
	want := []string{"0:a1", "1:b1", "1:b2", "1:b3", "trigger 7", "0:a2"}
	if !slices.Equal(s.log, want) {
		t.Errorf("got %v, want %v", s.log, want)
	}
}

func TestWatermarksOfAllChannelsAreCombined(t *testing.T) {
	t.Parallel()
	var head [wire.MaxElementHead]byte
	mark := func(w int64) []byte { return slices.Clone(head[:wire.PutWatermark(head[:], 0, w)]) }
	status := func(k wire.Kind) []byte { return slices.Clone(head[:wire.PutStatus(head[:], k)]) }
	g, s := newGate(t, 2), &fakeSink{}
	g.data(0, slices.Concat(record(false, 0, 1, []byte("a")), mark(10), record(false, 0, 1, []byte("b"))))
	g.data(1, slices.Concat(mark(7), status(wire.KindIdle)))
	g.data(0, status(wire.KindIdle))
	in := newInput(s, false, g)
	drain(t, in)
	want := []string{"0:a", "0:b", "watermark 7", "watermark 10", "idle true"}
	if !slices.Equal(s.log, want) {
		t.Errorf("got %v, want %v", s.log, want)
	}
}

func TestEndsOfChannelsEndInputs(t *testing.T) {
	t.Parallel()
	a, b, s := newGate(t, 2), newGate(t, 1), &fakeSink{}
	in := newInput(s, false, a, b)
	a.end(0)
	drain(t, in)
	if in.DataEnded() || len(s.log) > 0 {
		t.Errorf("ended with channels open: %v", s.log)
	}
	a.barrier(1, 3, 0)
	b.data(0, record(false, 0, 1, []byte("b")))
	b.end(0)
	drain(t, in)
	a.end(1)
	drain(t, in)
	want := []string{"1:b", "end of input 1", "trigger 3", "end of input 0"}
	if !slices.Equal(s.log, want) || !in.DataEnded() || !in.Ended() {
		t.Errorf("got %v, ended %v %v; want %v", s.log, in.DataEnded(), in.Ended(), want)
	}
}

func TestCancelledCheckpointIsAborted(t *testing.T) {
	t.Parallel()
	g, s := newGate(t, 2), &fakeSink{}
	g.barrier(0, 4, 0)
	g.event(1, wire.TypeEvent, wire.CancelBarrier{ID: 4})
	drain(t, newInput(s, false, g))
	if want := []string{"abort 4 CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER"}; !slices.Equal(s.log, want) || !slices.Equal(g.resumed, []int{0}) {
		t.Errorf("got %v, resumed %v", s.log, g.resumed)
	}
}

func TestWhatIsNoElementNamesItsChannel(t *testing.T) {
	t.Parallel()
	half := record(false, 0, 1, []byte("payload"))[:4]
	for name, put := range map[string]func(g *fakeGate){
		"length 0":     func(g *fakeGate) { g.data(1, []byte{0}) },
		"unknown kind": func(g *fakeGate) { g.data(1, []byte{1, 99}) },
		"huge length":  func(g *fakeGate) { g.data(1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}) },
		"event": func(g *fakeGate) {
			g.queues[1] = append(g.queues[1], gate.Item{Channel: 1, Type: wire.TypeEvent, Event: []byte{7, 7, 7}})
		},
		"barrier in element": func(g *fakeGate) { g.data(1, half); g.barrier(1, 1, 0) },
		"end in element":     func(g *fakeGate) { g.data(1, half); g.end(1) },
		"channel state":      func(g *fakeGate) { g.event(1, wire.TypeRecoveredEnd, wire.EndOfChannelState{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other, g := newGate(t, 1), newGate(t, 2)
			put(g)
			in := newInput(&fakeSink{}, false, other, g)
			var err error
			for worked := true; worked && err == nil; {
				worked, err = in.Poll(t.Context())
			}
			var c *input.ChannelError
			if !errors.As(err, &c) || c.Input != 1 || c.Channel != 1 {
				t.Errorf("got %v, want an error of input 1, channel 1", err)
			}
		})
	}
}

func TestErrorsOfGateAndSinkAreReturned(t *testing.T) {
	t.Parallel()
	lost := &gate.PartitionLost{Err: errors.New("reset")}
	g := newGate(t, 1)
	g.err = lost
	if _, err := newInput(&fakeSink{}, false, g).Poll(t.Context()); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	g, boom := newGate(t, 1), errors.New("boom")
	g.barrier(0, 1, 0)
	if _, err := newInput(&fakeSink{failWith: boom}, false, g).Poll(t.Context()); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if len(g.resumed) > 0 {
		t.Error("resumed after a failed snapshot")
	}
}

// TestAnyCutOfTheBytesGivesTheSameRecords cuts one stream into segments at random,
// suspends at random, lends or copies, and keeps every payload that was not lent.
func TestAnyCutOfTheBytesGivesTheSameRecords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		borrow := rapid.Bool().Draw(rt, "borrow")
		var stream []byte
		var want [][]byte
		for i := range rapid.IntRange(1, 200).Draw(rt, "records") {
			p := make([]byte, rapid.SampledFrom([]int{0, 1, 3, 20, 200}).Draw(rt, "size"))
			for j := range p {
				p[j] = byte(i + j)
			}
			want = append(want, p)
			stream = append(stream, record(false, 0, wire.NoTimestamp, p)...)
		}
		g := newGate(t, 1)
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), rapid.IntRange(1, 300).Draw(rt, "cut"))
			g.data(0, rest[:n])
			rest = rest[n:]
		}
		segments := len(g.queues[0])
		var got [][]byte
		s := &fakeSink{}
		s.process = func(b *operator.Batch) error {
			for run := rapid.IntRange(0, 64).Draw(rt, "run"); b.Next < b.N && run > 0; run-- {
				p := b.Payload[b.Next]
				if borrow {
					p = bytes.Clone(p)
				}
				got = append(got, p)
				b.Next++
			}
			return nil
		}
		in := newInput(s, borrow, g)
		drain(t, in)
		if !slices.EqualFunc(got, want, bytes.Equal) {
			rt.Fatalf("got %d records, want %d, or others", len(got), len(want))
		}
		if in.Bytes() != int64(len(stream)) || in.Records() != int64(len(want)) || g.released != segments {
			rt.Fatalf("%d bytes, %d records, %d of %d segments given back", in.Bytes(), in.Records(), g.released, segments)
		}
	})
}

// TestKeyedRecordsAllocateNothing lends segments: not even a copy is made.
func TestKeyedRecordsAllocateNothing(t *testing.T) {
	g := &loopGate{}
	payload := make([]byte, 100)
	for len(g.stream) < 2*wire.MaxPayload {
		binary.LittleEndian.PutUint64(payload, uint64(len(g.stream)))
		g.stream = append(g.stream, record(true, uint64(len(g.stream)), 5, payload)...)
	}
	records := 0
	s := &fakeSink{process: func(b *operator.Batch) error {
		records += b.N - b.Next
		b.Next = b.N
		return nil
	}}
	in := input.New(input.Options{
		Gates: []input.Gate{g}, Keyed: []bool{true}, Borrow: true, AfterTasksFinish: true, Sink: s, Now: time.Now,
	})
	ctx := t.Context()
	round := func() {
		for range 100 {
			if _, err := in.Poll(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	round()
	before := records
	if got := testing.AllocsPerRun(100, round); got != 0 {
		t.Errorf("%v allocations in 100 polls, want 0", got)
	}
	if records-before < 100*1000 {
		t.Errorf("only %d records were processed", records-before)
	}
}

// loopGate brings the same stream over and over in segments of the full size, from one
// buffer.
type loopGate struct {
	stream []byte
	off    int
	buf    *buffer.Buffer
}

func (g *loopGate) Poll() (gate.Item, bool, error) {
	if g.buf == nil {
		g.buf = buffer.Wrap(g.stream)
	}
	n := min(buffer.Capacity, len(g.stream)-g.off)
	v := g.buf.View(g.off, g.off+n)
	g.off = (g.off + n) % len(g.stream)
	return gate.Item{Type: wire.TypeData, Data: v}, true, nil
}
func (g *loopGate) PollPriority() (gate.Item, bool, error)              { return gate.Item{}, false, nil }
func (g *loopGate) ToHead(int, weir.CheckpointID) bool                  { return false }
func (g *loopGate) CaptureQueued(gate.Item, func(base int64, b []byte)) {}
func (g *loopGate) Overtaking(int) weir.CheckpointID                    { return weir.NoCheckpoint }
func (g *loopGate) Resume(int)                                          {}
func (g *loopGate) End(int)                                             {}
func (g *loopGate) Channels() int                                       { return 1 }

func BenchmarkCut(b *testing.B) {
	for _, borrow := range []bool{true, false} {
		b.Run(fmt.Sprintf("borrow=%v", borrow), func(b *testing.B) {
			g := &loopGate{}
			for len(g.stream) < 20*wire.MaxPayload {
				g.stream = append(g.stream, record(true, uint64(len(g.stream)), 5, make([]byte, 100))...)
			}
			s := &fakeSink{process: func(b *operator.Batch) error { b.Next = b.N; return nil }}
			in := input.New(input.Options{Gates: []input.Gate{g}, Keyed: []bool{true}, Borrow: borrow, Sink: s, Now: time.Now})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := in.Poll(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(in.Records()), "ns/record")
		})
	}
}
