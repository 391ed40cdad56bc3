package partition

import (
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/wire"
)

// Capture takes what a barrier overtook in the queue of a subpartition: bytes of
// elements in their order, up to one segment at a time, with the base timestamp of the
// segment. The first bytes may be the rest of an element whose beginning the reader
// has. It is called on the task's goroutine, without a lock, and keeps nothing of b.
type Capture func(subpartition int, base int64, b []byte)

// promise is what a timeoutable barrier leaves open: which subpartitions may still be
// told to let it overtake. The last one that is not is told to the task.
type promise struct {
	id      weir.CheckpointID
	left    atomic.Int32
	decided func(weir.CheckpointID)
}

// keep ends it for one subpartition.
func (d *promise) keep() {
	if d != nil && d.left.Add(-1) == 0 && d.decided != nil {
		d.decided(d.id)
	}
}

// BroadcastBarrier publishes what was emitted and adds the barrier to every
// subpartition. It never waits. How it is added is what its options say (behaviour
// §15.7, §17, §18):
//
//   - at-least-once: an event like others.
//   - unaligned: it overtakes. What it passes is captured before the call returns.
//   - aligned: the subpartition stops after it until its reader resumes it.
//   - aligned with a timeout: the same; and until it was polled, TimeoutBarrier lets it
//     overtake. The result is then true, and Options.Decided is called once no
//     subpartition will have anything captured for it any more (perhaps at once).
//     A barrier before it that is still open is as if aborted.
//   - on a partition that Aligns: forced-aligned instead of unaligned or aligned with
//     a timeout, which it keeps; the result is false.
//
// It does not change what the caller has of b.
func (p *ResultPartition) BroadcastBarrier(b weir.Barrier, capture Capture) (undecided bool) {
	typ := p.place(&b)
	e := NewEvent(typ, wire.Barrier(b))
	if typ == wire.TypeAnnouncedEvent {
		return p.broadcastTimeoutable(e)
	}
	if typ != wire.TypePriorityEvent {
		p.BroadcastEvent(e)
		return false
	}
	p.eventAllowed(e)
	overtaken := make([][]buffer.View, len(p.writers))
	for i := range p.writers { // the barrier goes everywhere before anything is copied
		p.commit(i)
		overtaken[i] = p.subpartitions[i].overtake(e)
		p.writers[i].drop()
	}
	for i, views := range overtaken {
		captured(i, views, capture)
	}
	p.count()
	return false
}

// place says how a barrier is added, and on an edge that aligns changes its options.
func (p *ResultPartition) place(b *weir.Barrier) wire.DataType {
	o := &b.Options
	timeoutable := o.Alignment == weir.Aligned && o.Timeout > 0
	if p.aligns && (timeoutable || o.Alignment == weir.Unaligned) {
		o.Alignment = weir.ForcedAligned
	}
	switch {
	case o.Alignment == weir.AtLeastOnce:
		return wire.TypeEvent
	case o.Alignment == weir.Unaligned:
		return wire.TypePriorityEvent
	case timeoutable && o.Alignment == weir.Aligned:
		return wire.TypeAnnouncedEvent
	}
	return wire.TypeBlockingEvent
}

func (p *ResultPartition) broadcastTimeoutable(e Event) (undecided bool) {
	p.eventAllowed(e)
	if p.open != nil {
		p.AbortBarrier(p.open.id)
	}
	d := &promise{id: e.Barrier, decided: p.decided}
	d.left.Store(int32(len(p.subpartitions)) + 1)
	p.open = d
	for i := range p.writers {
		p.commit(i)
		if !p.subpartitions[i].addTimeoutable(e, d) {
			d.left.Add(-1)
		}
		p.writers[i].drop()
	}
	p.count()
	return d.left.Add(-1) > 0
}

// TimeoutBarrier lets a timeoutable barrier overtake, as an unaligned one, wherever it
// was not polled yet: the data before it is captured, other barriers are not. For a
// barrier that is not open it does nothing. Options.Decided follows, unless it was
// called before.
func (p *ResultPartition) TimeoutBarrier(id weir.CheckpointID, capture Capture) {
	d := p.open
	if d == nil || d.id != id {
		return
	}
	p.open = nil
	overtaken := make([][]buffer.View, len(p.subpartitions))
	found := make([]bool, len(p.subpartitions))
	for i, s := range p.subpartitions { // likewise
		overtaken[i], found[i] = s.timeout(d)
	}
	for i, views := range overtaken {
		captured(i, views, capture)
		if found[i] {
			d.keep()
		}
	}
}

// AbortBarrier lets a timeoutable barrier stay where it is, as an aligned one. For a
// barrier that is not open it does nothing.
func (p *ResultPartition) AbortBarrier(id weir.CheckpointID) {
	d := p.open
	if d == nil || d.id != id {
		return
	}
	p.open = nil
	for _, s := range p.subpartitions {
		s.abort(d)
	}
}

// captured hands views out and releases them.
func captured(subpartition int, views []buffer.View, capture Capture) {
	for _, v := range views {
		if v.Len() > 0 {
			capture(subpartition, v.Base(), v.Bytes())
		}
		v.Release()
	}
}
