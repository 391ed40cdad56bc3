package input_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/taskmanager/barrier"
	"github.com/weirflow/weir/taskmanager/input"
)

// newAlternating is an input whose barriers may overtake.
func newAlternating(s input.Sink, borrow bool, gates ...*fakeGate) *input.CheckpointedGate {
	o := input.Options{Sink: s, Borrow: borrow, AfterTasksFinish: true, Now: time.Now, Mode: barrier.Alternating}
	for _, g := range gates {
		o.Gates = append(o.Gates, g)
		o.Keyed = append(o.Keyed, false)
	}
	return input.New(o)
}

func word(ts int64, payload string) []byte { return record(false, 0, ts, []byte(payload)) }

// urgent acts on priority items only.
func urgent(t testing.TB, in *input.CheckpointedGate) {
	t.Helper()
	if err := in.PollPriority(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func poll(t testing.TB, in *input.CheckpointedGate) {
	t.Helper()
	if worked, err := in.Poll(t.Context()); err != nil || !worked {
		t.Fatal(worked, err)
	}
}

func expect(t testing.TB, step string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", step, got, want)
	}
}

func TestUnaligned(t *testing.T) {
	t.Parallel()
	t.Run("O-UNA-01_until_its_own_barrier", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 2), &fakeSink{}
		in := newAlternating(s, false, g)
		g.data(0, word(1, "p"))
		g.data(1, word(1, "q"))
		drain(t, in)
		g.overtakes(0, 1)
		drain(t, in)
		g.data(0, word(1, "r"))
		g.data(1, word(1, "s"))
		g.data(1, word(1, "t"))
		drain(t, in)
		g.overtakes(1, 1)
		drain(t, in)
		g.data(1, word(1, "u"))
		drain(t, in)
		expect(t, "log", s.log, "0:p", "0:q", "trigger 1 unaligned", "0:r", "0:s", "0:t", "captured 1", "0:u")
		expect(t, "channel 0", s.inFlight(t, 0, 0))
		expect(t, "channel 1", s.inFlight(t, 0, 1), "s@1", "t@1")
		if len(g.resumed) > 0 {
			t.Errorf("resumed %v", g.resumed)
		}
	})
	t.Run("O-UNA-02_a_newer_one_aborts", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 2), &fakeSink{}
		in := newAlternating(s, false, g)
		g.overtakes(0, 1)
		drain(t, in)
		g.data(1, word(1, "x"))
		drain(t, in)
		g.overtakes(1, 2)
		drain(t, in)
		s.captured = nil
		g.data(0, word(1, "y"))
		drain(t, in)
		g.overtakes(0, 2)
		drain(t, in)
		expect(t, "log", s.log, "trigger 1 unaligned", "0:x", "trigger 2 unaligned", "abort 1 CHECKPOINT_DECLINED_SUBSUMED", "0:y", "captured 2")
		expect(t, "channel 0", s.inFlight(t, 0, 0), "y@1")
		expect(t, "channel 1", s.inFlight(t, 0, 1))
	})
	t.Run("O-UNA-03_a_marker_aborts", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 2), &fakeSink{}
		in := newAlternating(s, false, g)
		g.overtakes(0, 3)
		drain(t, in)
		g.event(1, wire.TypeEvent, wire.CancelBarrier{ID: 3})
		drain(t, in)
		g.data(1, word(1, "x"))
		g.overtakes(1, 3)
		drain(t, in)
		expect(t, "log", s.log, "trigger 3 unaligned", "abort 3 CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER", "0:x")
		if len(g.resumed) > 0 || len(s.captured) > 0 || in.Pending() != weir.NoCheckpoint {
			t.Errorf("resumed %v, captured %v", g.resumed, s.captured)
		}
	})
	t.Run("O-UNA-04_the_end_of_a_channel_completes", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 3), &fakeSink{}
		in := newAlternating(s, false, g)
		g.end(0)
		drain(t, in)
		g.overtakes(1, 4)
		drain(t, in)
		g.data(2, word(1, "z"))
		g.end(2)
		drain(t, in)
		expect(t, "log", s.log, "trigger 4 unaligned", "0:z", "captured 4")
		expect(t, "channel 2", s.inFlight(t, 0, 2), "z@1")
	})
}

func TestInputChannelCapture(t *testing.T) {
	t.Parallel()
	t.Run("O-INP-02_what_the_barrier_overtook", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 2), &fakeSink{}
		in := newAlternating(s, false, g)
		g.data(0, word(7, "x"))
		g.overtakes(0, 1)
		g.data(0, word(8, "y"))
		urgent(t, in)
		drain(t, in)
		expect(t, "log", s.log, "trigger 1 unaligned", "0:x", "0:y")
		expect(t, "channel 0", s.inFlight(t, 0, 0), "x@7")
	})
	t.Run("O-INP-03_a_newer_barrier_waits", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 2), &fakeSink{}
		in := newAlternating(s, false, g)
		g.overtaking[1] = 2
		g.overtakes(0, 1)
		drain(t, in)
		expect(t, "log", s.log, "trigger 1 unaligned", "abort 1 CHECKPOINT_SUBSUMED")
	})
	t.Run("O-INP-04_announced", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 2), &fakeSink{}
		in := newAlternating(s, false, g)
		for _, p := range []string{"a", "b", "c"} {
			g.data(0, word(1, p))
		}
		g.announces(0, 1, time.Second)
		urgent(t, in)
		expect(t, "announcement", s.log, "arm 1 1s")
		drain(t, in)
		expect(t, "barrier", s.log, "arm 1 1s", "0:a", "0:b", "0:c")
		g.announces(1, 1, time.Second)
		drain(t, in)
		expect(t, "last barrier", s.log, "arm 1 1s", "0:a", "0:b", "0:c", "trigger 1", "cancel timer 1")
	})
	t.Run("O-INP-05_half_a_record_first", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 3), &fakeSink{}
		in := newAlternating(s, false, g)
		long := word(5, "a long record")
		g.data(0, append(word(4, "whole"), long[:6]...))
		g.data(1, long[:3])
		drain(t, in)
		g.data(0, append(slices.Clone(long[6:]), word(6, "next")...))
		g.overtakes(0, 1)
		urgent(t, in)
		g.data(1, long[3:])
		drain(t, in)
		g.overtakes(1, 1)
		g.overtakes(2, 1)
		drain(t, in)
		expect(t, "log", s.log, "0:whole", "trigger 1 unaligned", "0:a long r", "0:next", "0:a long r", "captured 1")
		expect(t, "channel 0", s.inFlight(t, 0, 0), "a long record@5", "next@6")
		expect(t, "channel 1", s.inFlight(t, 0, 1), "a long record@5")
	})
}

func TestCaptureOfWhatTheTaskHolds(t *testing.T) {
	t.Parallel()
	t.Run("suspended_batch_first", func(t *testing.T) {
		t.Parallel()
		for _, borrow := range []bool{false, true} {
			g, s := newGate(t, 1), &fakeSink{suspendAt: 1}
			in := newAlternating(s, borrow, g)
			var mark [wire.MaxElementHead]byte
			n := wire.PutWatermark(mark[:], 0, 40)
			half := word(9, "half")
			g.data(0, slices.Concat(word(1, "a"), word(wire.NoTimestamp, "b"), word(7, "c"), mark[:n], word(8, "d"), half[:4]))
			poll(t, in)
			g.data(0, half[4:])
			g.overtakes(0, 1)
			urgent(t, in)
			expect(t, "captured", s.inFlight(t, 0, 0), fmt.Sprintf("b@%d", wire.NoTimestamp), "c@7", "watermark@40", "d@8", "half@9")
			drain(t, in)
			expect(t, "log", s.log, "0:a", "trigger 1 unaligned", "captured 1", "0:b", "0:c", "watermark 40", "0:d", "0:half")
		}
	})
	t.Run("barrier_moved_to_the_head", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 2), &fakeSink{}
		in := newAlternating(s, false, g)
		half := word(9, "half")
		g.data(0, half[:4])
		drain(t, in)
		g.data(0, half[4:])
		g.announces(0, 1, time.Second)
		urgent(t, in)
		if err := in.Timeout(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		urgent(t, in)
		if !g.blocked[0] {
			t.Error("the channel is not blocked behind its barrier")
		}
		g.overtakes(1, 1)
		drain(t, in)
		expect(t, "log", s.log, "arm 1 1s", "trigger 1 unaligned", "captured 1", "0:half")
		expect(t, "channel 0", s.inFlight(t, 0, 0), "half@9")
		if !slices.Equal(g.resumed, []int{0}) {
			t.Errorf("resumed %v", g.resumed)
		}
	})
	t.Run("barrier_of_an_aborted_checkpoint_is_let_pass", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 2), &fakeSink{}
		in := newAlternating(s, false, g)
		g.data(0, word(1, "a"))
		g.announces(0, 1, time.Second)
		urgent(t, in)
		g.overtakes(1, 2)
		urgent(t, in)
		urgent(t, in)
		if !slices.Equal(g.resumed, []int{0}) { // its sender has barrier 2
			t.Errorf("resumed %v", g.resumed)
		}
		g.overtakes(0, 2)
		urgent(t, in)
		expect(t, "log", s.log, "arm 1 1s", "trigger 2 unaligned", "abort 1 CHECKPOINT_DECLINED_SUBSUMED", "cancel timer 1", "captured 2")
		expect(t, "channel 0", s.inFlight(t, 0, 0), "a@1")
	})
	t.Run("given_up", func(t *testing.T) {
		t.Parallel()
		g, s := newGate(t, 2), &fakeSink{}
		in := newAlternating(s, false, g)
		g.overtakes(0, 1)
		drain(t, in)
		if in.Pending() != 1 {
			t.Errorf("pending is %d", in.Pending())
		}
		if err := in.GiveUp(t.Context(), 1, weir.CheckpointDeclined); err != nil {
			t.Fatal(err)
		}
		g.data(1, word(1, "x"))
		drain(t, in)
		expect(t, "log", s.log, "trigger 1 unaligned", "abort 1 CHECKPOINT_DECLINED", "0:x")
		if len(s.captured) > 0 {
			t.Errorf("captured %v", s.captured)
		}
	})
}

func TestAtLeastOnceNeverBlocks(t *testing.T) {
	t.Parallel()
	g, s := newGate(t, 2), &fakeSink{}
	in := input.New(input.Options{Gates: []input.Gate{g}, Keyed: []bool{false}, AfterTasksFinish: true, Sink: s, Now: time.Now, Mode: barrier.AtLeastOnce})
	b := wire.Barrier{ID: 1, Options: weir.CheckpointOptions{Alignment: weir.AtLeastOnce}}
	g.event(0, wire.TypeEvent, b)
	g.data(0, word(1, "a"))
	drain(t, in)
	g.event(1, wire.TypeEvent, b)
	drain(t, in)
	expect(t, "log", s.log, "0:a", "trigger 1")
}

func TestOnlyBarriersHavePriority(t *testing.T) {
	t.Parallel()
	g := newGate(t, 1)
	g.event(0, wire.TypePriorityEvent, wire.EndOfData{})
	_, err := newAlternating(&fakeSink{}, false, g).Poll(t.Context())
	if c := (*input.ChannelError)(nil); !errors.As(err, &c) {
		t.Errorf("got %v", err)
	}
}

// TestWhatIsNotProcessedIsCaptured cuts a stream at random, processes a part of it, lets a
// barrier overtake the rest and records: what was processed before the trigger and what
// was captured is the stream.
func TestWhatIsNotProcessedIsCaptured(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var stream []byte
		var want []string
		for i := range rapid.IntRange(1, 150).Draw(rt, "records") {
			p := fmt.Sprintf("%d%s", i, bytes.Repeat([]byte("x"), rapid.SampledFrom([]int{0, 20, 300}).Draw(rt, "size")))
			want = append(want, fmt.Sprintf("%s@%d", p, i))
			stream = append(stream, word(int64(i), p)...)
		}
		// Channel 1's barrier triggers; channel 0's comes later.
		g := newGate(t, 2)
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), rapid.IntRange(1, 400).Draw(rt, "cut"))
			g.data(0, rest[:n])
			rest = rest[n:]
		}
		s := &fakeSink{}
		var processed []string
		s.process = func(b *operator.Batch) error {
			for run := rapid.IntRange(0, 64).Draw(rt, "run"); b.Next < b.N && run > 0; run-- {
				if len(s.log) == 0 { // not triggered
					processed = append(processed, fmt.Sprintf("%s@%d", b.Payload[b.Next], b.Timestamp[b.Next]))
				}
				b.Next++
			}
			return nil
		}
		in := newAlternating(s, rapid.Bool().Draw(rt, "borrow"), g)
		some := func(name string) {
			for range rapid.IntRange(0, 60).Draw(rt, name) {
				if _, err := in.Poll(t.Context()); err != nil {
					rt.Fatal(err)
				}
			}
		}
		some("before")
		g.overtakes(1, 1)
		urgent(t, in)
		some("between")
		g.overtakes(0, 1)
		urgent(t, in)
		drain(t, in)
		if got := append(processed, s.inFlight(t, 0, 0)...); !slices.Equal(got, want) {
			rt.Fatalf("processed and captured %d, want %d, or others\n%q", len(got), len(want), got)
		}
		expect(t, "log", s.log, "trigger 1 unaligned", "captured 1")
	})
}
