package input

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/taskmanager/barrier"
	"github.com/weirflow/weir/taskmanager/watermark"
)

// Gate is one input gate of the data plane.
type Gate interface {
	Poll() (gate.Item, bool, error)
	PollPriority() (gate.Item, bool, error)
	ToHead(channel int, id weir.CheckpointID) bool
	CaptureQueued(barrier gate.Item, take func(base int64, b []byte))
	Overtaking(channel int) weir.CheckpointID
	Resume(channel int)
	End(channel int)
	Channels() int
}

var _ Gate = (*gate.InputGate)(nil)

// Sink is the task: what the input hands over, in the order in which it must be done.
// An error of a sink ends the task.
type Sink interface {
	// Process runs the batch from b.Next on; b.Next says how far it came.
	Process(b *operator.Batch) error
	Watermark(w weir.Watermark) error
	Status(idle bool) error
	// Trigger takes the snapshot of a checkpoint. If it is unaligned, Capture follows
	// for all that was before its barriers and not processed, and then Captured or Abort.
	Trigger(ctx context.Context, b weir.Barrier, m weir.CheckpointMetrics) error
	// Capture copies bytes of a channel, after those captured of it before. base is that
	// of the segment that held them.
	Capture(id weir.CheckpointID, input, channel int, base int64, b []byte)
	// Captured says that all input of a checkpoint is captured, and how long its barriers
	// took in the end.
	Captured(id weir.CheckpointID, a barrier.Alignment)
	// ArmTimer asks for a call of Timeout after a time; CancelTimer calls it off.
	ArmTimer(id weir.CheckpointID, after time.Duration)
	CancelTimer(id weir.CheckpointID)
	// Hurry asks for a call of PollPriority soon.
	Hurry()
	// Abort gives up a checkpoint whose barriers will not all come.
	Abort(id weir.CheckpointID, reason weir.FailureReason)
	// EndOfInput says that an input brings no more records.
	EndOfInput(input int) error
}

// Options of a CheckpointedGate.
type Options struct {
	Gates []Gate
	// Keyed says of each gate whether its records carry hashes.
	Keyed []bool
	// Borrow lends segments to the chain instead of copying them.
	Borrow bool
	// Mode says how barriers are treated.
	Mode             barrier.Mode
	AfterTasksFinish bool
	Sink             Sink
	Now              func() time.Time
}

// CheckpointedGate is the input of a task. It is for the task's goroutine, counters
// excepted.
type CheckpointedGate struct {
	gates    []gateState
	channels []channel // of all gates, in order
	handler  *barrier.Handler
	mode     barrier.Mode
	valve    *watermark.Valve
	meter    *Meter
	sink     Sink
	now      func() time.Time
	borrow   bool

	turn int // gate to poll first

	// The channel whose bytes are being cut, or -1; the element that follows the
	// batch, if it is no record; the segment that payloads alias, if lent.
	current    int
	batch      operator.Batch
	batchBytes int64 // size of the batch's elements
	batchDone  int64 // part of it that was counted as processed
	after      wire.Element
	lent       buffer.View
	spanning   bool // the next element began in an earlier segment

	// suspended: a channel's data ended because the job stops without a drain.
	suspended bool

	triggered weir.CheckpointID // what is captured is captured for it
	scratch   []byte            // encoded elements of a batch that is captured

	records, bytes atomic.Int64
}

// gateState is a gate and how much of it is left.
type gateState struct {
	Gate
	first int // index of its first channel among all
	data  int // channels that have not said that their data ended
	open  int // channels that have not ended
}

// channel is the state of one channel.
type channel struct {
	gate   int // index
	local  int // number in the gate
	cutter wire.Cutter
	// recording: what is polled is captured before it is cut.
	recording bool
	// announced is the newest checkpoint whose barrier may sit further back in the channel,
	// moved the newest whose barrier was moved to its head.
	announced, moved weir.CheckpointID
	dataEnd          bool // brings no more records
	ended            bool
}

// New returns the input of a task with at least one gate.
func New(o Options) *CheckpointedGate {
	g := &CheckpointedGate{sink: o.Sink, now: o.Now, borrow: o.Borrow, mode: o.Mode, current: -1}
	for i, source := range o.Gates {
		n := source.Channels()
		g.gates = append(g.gates, gateState{Gate: source, first: len(g.channels), data: n, open: n})
		for ch := range n {
			g.channels = append(g.channels, channel{gate: i, local: ch, cutter: wire.Cutter{Keyed: o.Keyed[i], Reuse: o.Borrow}})
		}
	}
	g.handler = barrier.New(barrier.Options{Mode: o.Mode, Channels: len(g.channels), AfterTasksFinish: o.AfterTasksFinish})
	g.valve = watermark.New(len(g.channels))
	g.meter = NewMeter(o.Now(), len(g.channels))
	return g
}

// Meter is the input's meter; the task tells it of idle times.
func (g *CheckpointedGate) Meter() *Meter { return g.meter }

// Records and Bytes are what has been processed. Callable from any goroutine.
func (g *CheckpointedGate) Records() int64 { return g.records.Load() }

// Bytes counts the bytes of elements that have been processed.
func (g *CheckpointedGate) Bytes() int64 { return g.bytes.Load() }

// DataEnded says that no input brings records any more.
func (g *CheckpointedGate) DataEnded() bool {
	for i := range g.gates {
		if g.gates[i].data > 0 {
			return false
		}
	}
	return true
}

// Suspended says that the data of a channel did not end by itself: the job stops without
// a drain (behaviour §12).
func (g *CheckpointedGate) Suspended() bool { return g.suspended }

// Ended says that no input brings anything any more.
func (g *CheckpointedGate) Ended() bool {
	for i := range g.gates {
		if g.gates[i].open > 0 {
			return false
		}
	}
	return true
}

// Poll does the next thing there is to do. It returns false if there is nothing until
// a gate wakes the task.
func (g *CheckpointedGate) Poll(ctx context.Context) (bool, error) {
	if g.current >= 0 {
		return true, g.goOn()
	}
	for range g.gates {
		i := g.turn
		if g.turn++; g.turn == len(g.gates) {
			g.turn = 0
		}
		if g.gates[i].open == 0 {
			continue
		}
		item, ok, err := g.gates[i].Poll()
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		ch := g.gates[i].first + item.Channel
		if item.Type == wire.TypeData {
			g.feed(ch, item.Data)
			return true, g.goOn()
		}
		return true, g.event(ctx, ch, item)
	}
	return false, nil
}

// PollPriority acts on all that overtook, was moved to the head or announces, also while
// a batch is suspended or the outputs have no room.
func (g *CheckpointedGate) PollPriority(ctx context.Context) error {
	for i := range g.gates {
		for g.gates[i].open > 0 {
			item, ok, err := g.gates[i].PollPriority()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if err := g.event(ctx, g.gates[i].first+item.Channel, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// feed gives a segment's bytes to its channel's cutter.
func (g *CheckpointedGate) feed(ch int, data buffer.View) {
	assert.That(g.current < 0 && !g.channels[ch].ended, "data of channel %d while %d is cut", ch, g.current)
	if g.channels[ch].recording {
		g.capture(ch, data.Base(), data.Bytes())
	}
	c := &g.channels[ch].cutter
	begun, _, _, _ := c.Rest()
	g.spanning = len(begun) > 0
	g.current = ch
	if g.borrow {
		c.Feed(data.Bytes(), data.Base())
		g.lent = data
		return
	}
	c.Feed(append([]byte(nil), data.Bytes()...), data.Base())
	data.Release()
}

// goOn runs what is left of the batch, then what follows it, then cuts the next one.
func (g *CheckpointedGate) goOn() error {
	switch {
	case g.batch.Next < g.batch.N:
		return g.run()
	case g.after.Kind != 0:
		e := g.after
		g.after = wire.Element{}
		return g.element(e)
	}
	if err := g.cut(); err != nil {
		return err
	}
	if g.batch.N > 0 {
		return g.run()
	}
	if g.after.Kind == 0 {
		g.current = -1
		g.lent.Release()
		g.lent = buffer.View{}
	}
	return nil
}

// cut fills the batch with the channel's next records. An element that is none ends
// the batch and follows it. A lent element that spans segments lies in memory that
// the cutter uses again, so it is a batch of its own.
func (g *CheckpointedGate) cut() error {
	c := &g.channels[g.current]
	b := &g.batch
	b.Input, b.N, b.Next = c.gate, 0, 0
	g.batchBytes, g.batchDone = 0, 0
	before := uncut(&c.cutter)
	if !g.spanning {
		b.N = c.cutter.Records(b.Hash[:], b.Timestamp[:], b.Payload[:])
	}
	var e wire.Element
	for b.N < operator.BatchSize {
		ok, err := c.cutter.Next(&e)
		if err != nil {
			return g.fail(g.current, err)
		}
		if !ok {
			break
		}
		if !e.Kind.IsRecord() {
			g.after = e
			g.spanning = false
			break
		}
		b.Hash[b.N], b.Timestamp[b.N], b.Payload[b.N] = e.Hash, e.Timestamp, e.Payload
		b.N++
		if g.spanning {
			g.spanning = false
			if g.borrow {
				break
			}
		}
	}
	g.batchBytes = before - uncut(&c.cutter)
	if b.N == 0 {
		// Nothing will be run for these bytes: an element that is no record.
		g.count(g.batchBytes)
	}
	return nil
}

// uncut is the number of bytes that a cutter holds and has not given out.
func uncut(c *wire.Cutter) int64 {
	begun, _, left, _ := c.Rest()
	return int64(len(begun) + len(left))
}

// run processes the batch from where it was suspended, and counts what it did.
func (g *CheckpointedGate) run() error {
	b := &g.batch
	from := b.Next
	if err := g.sink.Process(b); err != nil {
		return err
	}
	assert.That(b.Next >= from && b.Next <= b.N, "batch went from record %d to %d of %d", from, b.Next, b.N)
	if b.Next == from {
		return nil
	}
	if b.Next < b.N && planted.Is(planted.SuspendedRecordSkipped) {
		b.Next++
	}
	g.records.Add(int64(b.Next - from))
	done := g.batchBytes * int64(b.Next) / int64(b.N)
	g.count(done - g.batchDone)
	g.batchDone = done
	if b.Next == b.N {
		clear(b.Payload[:b.N]) // do not keep segments alive
	}
	return nil
}

// count notes bytes as processed.
func (g *CheckpointedGate) count(bytes int64) {
	if bytes == 0 {
		return
	}
	g.bytes.Add(bytes)
	g.meter.Processed(g.now(), g.current, bytes)
}

func (g *CheckpointedGate) fail(ch int, err error) error {
	c := &g.channels[ch]
	return &ChannelError{Input: c.gate, Channel: c.local, Err: err}
}

// Close gives back what was lent. The gates belong to the task.
func (g *CheckpointedGate) Close() {
	g.lent.Release()
	g.lent = buffer.View{}
}
