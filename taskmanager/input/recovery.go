package input

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
)

// RecoveredChannel says what takes the place of a channel of which data was in flight.
type RecoveredChannel struct {
	Gate int
	// Channel is the gate's channel to which watermarks and status in the data belong; if
	// it is negative they are dropped.
	Channel int
	// Keep says which hashes are of this task; nil: all.
	Keep func(hash uint64) bool
}

// Recovery is the data that was in flight in one channel when a snapshot was taken: whole
// elements, cut by a cutter of its own (behaviour §21.3). It is processed before
// anything is polled, one recovery after another: Feed, Step until that wants more, and
// so on, and End.
type Recovery struct {
	g       *CheckpointedGate
	channel int // among all, or negative
	keep    func(hash uint64) bool
	cutter  wire.Cutter
	batch   operator.Batch
	after   wire.Element
}

// Recover begins with a recovered channel.
func (g *CheckpointedGate) Recover(r RecoveredChannel) *Recovery {
	source := &g.gates[r.Gate]
	x := &Recovery{g: g, channel: r.Channel, keep: r.Keep}
	x.batch.Input = r.Gate
	x.cutter.Keyed = g.channels[source.first].cutter.Keyed
	if r.Channel >= 0 {
		x.channel += source.first
	}
	return x
}

// Feed takes the next bytes of the channel, which it copies.
func (r *Recovery) Feed(base int64, b []byte) {
	r.g.bytes.Add(int64(len(b)))
	r.cutter.Feed(append([]byte(nil), b...), base)
}

// Step runs what is left of a batch, or what follows it, or cuts the next one. It returns
// false if it wants bytes.
func (r *Recovery) Step() (more bool, err error) {
	b := &r.batch
	switch {
	case b.Next < b.N:
		return true, r.run()
	case r.after.Kind != 0:
		e := r.after
		r.after = wire.Element{}
		return true, r.element(e)
	}
	b.N, b.Next = 0, 0
	var e wire.Element
	for b.N < operator.BatchSize && r.after.Kind == 0 {
		ok, err := r.cutter.Next(&e)
		if err != nil {
			return false, err
		}
		switch {
		case !ok:
			return b.N > 0, nil
		case !e.Kind.IsRecord():
			r.after = e
		case r.keep == nil || r.keep(e.Hash) || planted.Is(planted.RecoveredByAll):
			b.Hash[b.N], b.Timestamp[b.N], b.Payload[b.N] = e.Hash, e.Timestamp, e.Payload
			b.N++
		}
	}
	return true, nil
}

func (r *Recovery) run() error {
	b := &r.batch
	from := b.Next
	if err := r.g.sink.Process(b); err != nil {
		return err
	}
	r.g.records.Add(int64(b.Next - from))
	if b.Next == b.N {
		clear(b.Payload[:b.N])
	}
	return nil
}

// element acts on an element that is no record, as if the new channel had brought it.
func (r *Recovery) element(e wire.Element) error {
	switch {
	case r.channel < 0:
		return nil
	case e.Kind == wire.KindWatermark:
		return r.g.change(r.g.valve.Watermark(r.channel, weir.Watermark(e.Timestamp)))
	case e.Kind == wire.KindIdle:
		return r.g.change(r.g.valve.Idle(r.channel))
	case e.Kind == wire.KindActive:
		return r.g.change(r.g.valve.Active(r.channel))
	}
	return fmt.Errorf("element of kind %s", e.Kind)
}

// End says that nothing follows.
func (r *Recovery) End() error {
	if n := uncut(&r.cutter); n > 0 {
		return fmt.Errorf("%w: %d bytes of it are left", ErrHalfRecord, n)
	}
	return nil
}
