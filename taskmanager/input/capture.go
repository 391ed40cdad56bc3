package input

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/taskmanager/barrier"
)

// record begins to capture a channel, with what was taken from it and not processed. It
// returns true if the barrier of a newer checkpoint waits in the channel, so that what
// is captured will never be whole (O-INP-03).
func (g *CheckpointedGate) record(ch int) (late bool) {
	c := &g.channels[ch]
	c.recording = true
	if ch == g.current && !planted.Is(planted.BatchNotCaptured) {
		g.captureBatch()
	}
	begun, begunBase, left, leftBase := c.cutter.Rest()
	if !planted.Is(planted.HalfNotCaptured) {
		g.capture(ch, begunBase, begun)
	}
	g.capture(ch, leftBase, left)
	return g.gates[c.gate].Overtaking(c.local) > g.triggered
}

// captureBatch captures the suspended rest of the batch and the element that follows it.
// They were cut already and are encoded anew.
func (g *CheckpointedGate) captureBatch() {
	b := &g.batch
	if b.Next == b.N && g.after.Kind == 0 {
		return
	}
	keyed := g.channels[g.current].cutter.Keyed
	base := g.batchBase()
	out := g.scratch[:0]
	var head [wire.MaxElementHead]byte
	for i := b.Next; i < b.N; i++ {
		n := wire.PutRecordHead(head[:], keyed, b.Hash[i], base, b.Timestamp[i], len(b.Payload[i]))
		out = append(append(out, head[:n]...), b.Payload[i]...)
	}
	switch e := g.after; e.Kind {
	case wire.KindWatermark:
		out = append(out, head[:wire.PutWatermark(head[:], base, e.Timestamp)]...)
	case wire.KindIdle, wire.KindActive:
		out = append(out, head[:wire.PutStatus(head[:], e.Kind)]...)
	}
	g.capture(g.current, base, out)
	if g.scratch = out; cap(out) > 4*wire.MaxPayload {
		g.scratch = nil // it held a large record
	}
}

// batchBase is a timestamp near those of the batch.
func (g *CheckpointedGate) batchBase() int64 {
	for i := g.batch.Next; i < g.batch.N; i++ {
		if at := g.batch.Timestamp[i]; at != wire.NoTimestamp {
			return at
		}
	}
	return 0
}

// stopRecording ends the capture of a channel. If that is because of its barrier, item is
// the barrier, and what it left behind in the queue is captured last.
func (g *CheckpointedGate) stopRecording(a barrier.StopRecording, item gate.Item) {
	c := &g.channels[a.Channel]
	c.recording = false
	if !a.Arrived || item.Type == wire.TypeNone {
		return
	}
	g.gates[c.gate].CaptureQueued(item, func(base int64, b []byte) { g.capture(a.Channel, base, b) })
}

func (g *CheckpointedGate) capture(ch int, base int64, b []byte) {
	if len(b) > 0 {
		g.sink.Capture(g.triggered, g.channels[ch].gate, g.channels[ch].local, base, b)
	}
}

// announced notes a barrier that sits further back in a channel. An older one there is of
// no use any more.
func (g *CheckpointedGate) announced(ch int, id weir.CheckpointID) {
	if old := g.channels[ch].announced; old != weir.NoCheckpoint && old < id {
		g.toHead(ch, old)
	}
	g.channels[ch].announced = id
}

// toHead lets the barrier that a channel announced overtake: it may cut an element.
func (g *CheckpointedGate) toHead(ch int, id weir.CheckpointID) {
	c := &g.channels[ch]
	c.announced = weir.NoCheckpoint
	if g.gates[c.gate].ToHead(c.local, id) {
		c.moved = max(c.moved, id)
		g.sink.Hurry()
	}
}

// letPass moves barriers to the head that were announced and that nobody waits for any
// more: their senders have stopped behind them, and what overtakes next could not come.
func (g *CheckpointedGate) letPass(id weir.CheckpointID) {
	for ch := range g.channels {
		if at := g.channels[ch].announced; at != weir.NoCheckpoint && at <= id {
			g.toHead(ch, at)
		}
	}
}
