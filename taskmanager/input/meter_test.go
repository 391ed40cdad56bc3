package input_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/taskmanager/input"
)

// TestQueuedBytesPredictTheDuration lets a slow task work off a queue that holds a
// barrier: measured and predicted time must agree, whenever the checkpoint was
// triggered.
func TestQueuedBytesPredictTheDuration(t *testing.T) {
	t.Parallel()
	const perRecord, size = 5 * time.Millisecond, 1000
	for _, ahead := range []int{3, 40, 800} { // records per channel that the barrier waits behind
		g := newGate(t, 2)
		now := time.Unix(1000, 0)
		s := &fakeSink{process: func(b *operator.Batch) error {
			now = now.Add(time.Duration(b.N-b.Next) * perRecord)
			b.Next = b.N
			return nil
		}}
		in := input.New(input.Options{
			Gates: []input.Gate{g}, Keyed: []bool{false}, AfterTasksFinish: true, Sink: s,
			Now: func() time.Time { return now },
		})
		fill := func(ch, n int) {
			for n > 0 {
				var segment []byte
				for ; n > 0 && len(segment) < wire.MaxPayload-2*size; n-- {
					segment = append(segment, record(false, 0, wire.NoTimestamp, make([]byte, size))...)
				}
				g.data(ch, segment)
			}
		}
		// The past: 20 s of work with a pause in the middle.
		fill(0, 1000)
		fill(1, 1000)
		drain(t, in)
		in.Meter().Idle(now, now.Add(2*time.Second))
		now = now.Add(2 * time.Second)
		fill(0, 1000)
		fill(1, 1000)
		drain(t, in)
		triggered := now
		fill(0, ahead)
		fill(1, ahead)
		// What the barriers say of their age is found out when they are polled.
		for worked := true; worked; {
			var err error
			if worked, err = in.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(g.queues[0]) == 0 && len(g.queues[1]) == 0 && in.Records() == int64(4000+2*ahead) {
				g.barrier(0, 1, now.Sub(triggered))
				g.barrier(1, 1, now.Sub(triggered))
				break
			}
		}
		drain(t, in)
		if len(s.metrics) != 1 {
			t.Fatalf("%d checkpoints", len(s.metrics))
		}
		m := s.metrics[0]
		if b := m.LastBarrier; !b.Came || b.Input != 0 || b.Queued < 950*int64(ahead) || b.Queued > m.QueuedBytes {
			t.Errorf("%d records ahead: the last barrier %+v", ahead, b)
		}
		want := float64(2*ahead) * perRecord.Seconds()
		got := float64(m.QueuedBytes) / m.DrainRate
		if got < 0.97*want || got > 1.03*want {
			t.Errorf("%d records ahead: predicted %.3f s, took %.3f s (%d bytes at %.0f per second)", ahead, got, want, m.QueuedBytes, m.DrainRate)
		}
	}
}

// TestMeterKnowsTheLastBarrier of a checkpoint, and what was queued ahead of it.
func TestMeterKnowsTheLastBarrier(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	m := input.NewMeter(start, 3)
	barrier := func(s, channel int, id weir.CheckpointID) {
		m.Barrier(at(s), channel, weir.Barrier{ID: id, Age: time.Duration(s-10) * time.Second}) // triggered at 10
	}
	want := func(id weir.CheckpointID, channel int, queued int64) {
		t.Helper()
		if ch, q := m.Last(id); ch != channel || q != queued {
			t.Errorf("checkpoint %d: channel %d behind %d bytes, want channel %d behind %d", id, ch, q, channel, queued)
		}
	}
	want(1, -1, 0)
	m.Processed(at(10), 2, 500)
	m.Processed(at(11), 0, 100)
	barrier(11, 0, 1)
	want(1, 0, 100)
	m.Processed(at(12), 2, 70)
	barrier(12, 2, 1)
	want(1, 2, 70)
	want(2, -1, 0)
	barrier(13, 1, 2)
	want(2, 1, 0)
	barrier(14, 0, 1) // of an older one
	want(2, 1, 0)
	want(1, -1, 0)
}

// TestMeterForgetsSlowly drives hours of batches and asks for the past at any
// distance.
func TestMeterForgetsSlowly(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	m := input.NewMeter(start, 1)
	const step, bytes = 3 * time.Millisecond, 700
	now := start
	for now.Sub(start) < time.Hour {
		now = now.Add(step)
		m.Processed(now, 0, bytes)
	}
	for i, age := range []time.Duration{0, 40 * time.Millisecond, time.Second, 30 * time.Second, 10 * time.Minute} {
		id := weir.CheckpointID(i + 1)
		m.Barrier(now, 0, weir.Barrier{ID: id, Age: age})
		want := float64(age) / float64(step) * bytes
		if got := float64(m.Queued(id)); got < 0.99*want-bytes || got > 1.01*want+bytes {
			t.Errorf("%v ago: %.0f bytes since, want %.0f", age, got, want)
		}
	}
}

func TestRateLeavesIdleTimeOut(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	m := input.NewMeter(start, 1)
	if r := m.Rate(start); r != 0 {
		t.Errorf("rate %v of nothing", r)
	}
	now := start
	for range 3000 { // 1 ms of work for 1000 bytes, then 9 ms of nothing
		now = now.Add(time.Millisecond)
		m.Processed(now, 0, 1000)
		m.Idle(now, now.Add(9*time.Millisecond))
		now = now.Add(9 * time.Millisecond)
	}
	if r := m.Rate(now); r < 0.95e6 || r > 1.05e6 {
		t.Errorf("rate %.0f, want about 1000000", r)
	}
}
