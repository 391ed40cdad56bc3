package partition

import (
	"fmt"
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/wire"
)

// Options of a ResultPartition.
type Options struct {
	Partitioning   Partitioning
	Subpartitions  int
	MaxParallelism int // of the consumer, for Hash
	// Pool has at least Subpartitions + 1 buffers and an account for each
	// subpartition. The partition closes it.
	Pool *buffer.LocalPool
	// EachRecord publishes after every record.
	EachRecord bool
	// Aligns says that no barrier overtakes here (behaviour §17).
	Aligns bool
	// PerOutput is how many segments a subpartition should have at most, for
	// [gate.InputGate.PoolUsage] of a reader in this process; 0: unknown.
	PerOutput int
	// Decided is called once for each BroadcastBarrier that returned true, when no more
	// will be captured for the barrier: in every subpartition it was polled, was timed
	// out or aborted, or nobody reads. It is called from any goroutine, without a lock,
	// perhaps from within a call of this partition, and must not wait.
	Decided func(id weir.CheckpointID)
	// Released is called once all subpartitions have been released or failed, from
	// any goroutine, without a lock.
	Released func()
}

// ResultPartition is one output of a task. Emit, EmitTo, Watermark, Status, BroadcastEvent,
// BroadcastBarrier, TimeoutBarrier, AbortBarrier, FlushIfRequested, FlushAll and Close are
// for the task's goroutine; the rest is for any.
type ResultPartition struct {
	partitioning   Partitioning
	maxParallelism int
	eachRecord     bool
	owner          []uint16 // subpartition of each key group
	next           int      // of the round robin
	writers        []writer
	appender       *Appender // nil if all records are emitted
	base           int64     // the last timestamp that opened a segment
	records, bytes int64     // emitted; the atomics below follow at each hand-over
	head           [wire.MaxElementHead]byte
	finished       bool // the last event was broadcast
	aligns         bool
	decided        func(weir.CheckpointID)
	open           *promise // of the last timeoutable barrier, if it was not timed out or aborted

	subpartitions []*Subpartition
	pool          *buffer.LocalPool

	flush   atomic.Bool // somebody wants the partition to publish
	counted struct{ records, bytes atomic.Int64 }
	stopped atomic.Bool
	stop    chan struct{} // closed when stopped
	live    atomic.Int32  // subpartitions that have not ended
}

// writer is the segment being filled for one subpartition.
type writer struct {
	buf       *buffer.Buffer // nil if there is none
	data      []byte         // what it can hold
	pos       int            // bytes written
	committed int            // bytes published
	base      int64
}

// New makes a partition.
func New(o Options) *ResultPartition {
	assert.That(o.Subpartitions >= 1 && (o.Partitioning != Forward || o.Subpartitions == 1), "%d subpartitions", o.Subpartitions)
	p := &ResultPartition{
		partitioning:   o.Partitioning,
		maxParallelism: o.MaxParallelism,
		eachRecord:     o.EachRecord,
		aligns:         o.Aligns,
		decided:        o.Decided,
		writers:        make([]writer, o.Subpartitions),
		pool:           o.Pool,
		stop:           make(chan struct{}),
	}
	p.live.Store(int32(o.Subpartitions))
	ended := func() {
		if p.live.Add(-1) == 0 && o.Released != nil {
			o.Released()
		}
	}
	for range o.Subpartitions {
		p.subpartitions = append(p.subpartitions, newSubpartition(ended, o.PerOutput))
	}
	if o.Partitioning == Hash {
		p.owner = make([]uint16, o.MaxParallelism)
		for g := range p.owner {
			p.owner[g] = uint16(weir.KeyGroupOwner(weir.KeyGroup(g), o.MaxParallelism, o.Subpartitions))
		}
	}
	p.appender = newAppender(p)
	return p
}

// Subpartitions is the number of subpartitions.
func (p *ResultPartition) Subpartitions() int { return len(p.subpartitions) }

// Subpartition returns the queue of one consumer.
func (p *ResultPartition) Subpartition(i int) *Subpartition { return p.subpartitions[i] }

// Emit appends one record, whose payload is copied. It may wait for a buffer. After
// Fail it drops the record. It panics with [ErrRecordTooLarge]. It says whether there
// is something to look after: a segment was begun, or a flush is asked for.
func (p *ResultPartition) Emit(hash uint64, timestamp int64, payload []byte) (look bool) {
	i := 0
	switch p.partitioning {
	case Forward:
	case Hash:
		i = int(p.owner[weir.KeyGroupOf(hash, p.maxParallelism)])
	case Rebalance, Rescale:
		i = p.next
		if p.next++; p.next == len(p.writers) {
			p.next = 0
		}
	case Broadcast:
		p.broadcast(timestamp, payload)
		return
	case Custom:
		assert.That(false, "Emit without a subpartition")
	}
	p.records++
	w := &p.writers[i]
	if free := w.data[w.pos:]; wire.MaxElementHead+len(payload) <= len(free) {
		n := wire.PutRecordHead(free, p.partitioning == Hash, hash, w.base, timestamp, len(payload))
		w.pos += n + copy(free[n:], payload)
		if !p.eachRecord {
			return p.flush.Load()
		}
	} else {
		p.emitAcross(i, hash, timestamp, payload)
	}
	if p.eachRecord {
		p.publish(i)
	}
	return true
}

// EmitTo appends one record to a subpartition, without a hash; else it is [ResultPartition.Emit].
func (p *ResultPartition) EmitTo(subpartition int, timestamp int64, payload []byte) {
	p.records++
	p.append(subpartition, timestamp, payload)
}

// broadcast appends one record to every subpartition. It counts once.
func (p *ResultPartition) broadcast(timestamp int64, payload []byte) {
	p.records++
	for i := range p.writers {
		p.append(i, timestamp, payload)
	}
}

// append appends a record without a hash.
func (p *ResultPartition) append(i int, timestamp int64, payload []byte) {
	w := &p.writers[i]
	if w.pos+wire.MaxElementHead+len(payload) <= len(w.data) {
		w.pos += wire.PutRecordHead(w.data[w.pos:], false, 0, w.base, timestamp, len(payload))
		w.pos += copy(w.data[w.pos:], payload)
	} else {
		p.emitAcross(i, 0, timestamp, payload)
	}
	if p.eachRecord {
		p.publish(i)
	}
}

// emitAcross appends a record that may not fit in the segment.
func (p *ResultPartition) emitAcross(i int, hash uint64, timestamp int64, payload []byte) {
	if len(payload) > maxRecord {
		panic(fmt.Errorf("%d bytes of at most %d: %w", len(payload), maxRecord, ErrRecordTooLarge))
	}
	w := &p.writers[i]
	if w.pos == len(w.data) && !p.nextSegment(i, timestamp, wire.MaxElementHead+len(payload)) {
		return
	}
	n := wire.PutRecordHead(p.head[:], p.partitioning == Hash, hash, w.base, timestamp, len(payload))
	if p.write(i, p.head[:n], timestamp, len(payload)) {
		p.write(i, payload, timestamp, 0)
	}
}

// write appends bytes of an element, over as many segments as it takes; so many more
// follow. It returns false if the partition was stopped.
func (p *ResultPartition) write(i int, b []byte, timestamp int64, follow int) bool {
	w := &p.writers[i]
	for len(b) > 0 {
		if w.pos == len(w.data) && !p.nextSegment(i, timestamp, len(b)+follow) {
			return false
		}
		n := copy(w.data[w.pos:], b)
		w.pos += n
		b = b[n:]
	}
	return true
}

// Watermark sends a watermark to every subpartition.
func (p *ResultPartition) Watermark(w weir.Watermark) {
	for i := range p.writers {
		if p.writers[i].pos == len(p.writers[i].data) && !p.nextSegment(i, int64(w), wire.MaxElementHead) {
			return
		}
		n := wire.PutWatermark(p.head[:], p.writers[i].base, int64(w))
		p.write(i, p.head[:n], int64(w), 0)
		if p.eachRecord {
			p.publish(i)
		}
	}
}

// Status tells every subpartition that this subtask became idle or active.
func (p *ResultPartition) Status(idle bool) {
	kind := wire.KindActive
	if idle {
		kind = wire.KindIdle
	}
	n := wire.PutStatus(p.head[:], kind)
	for i := range p.writers {
		p.write(i, p.head[:n], wire.NoTimestamp, 0)
		if p.eachRecord {
			p.publish(i)
		}
	}
}

// nextSegment finishes the full segment of a subpartition and begins another, whose
// base is the timestamp, for an element of which so many bytes are left. It may wait. It
// returns false if the partition was stopped.
func (p *ResultPartition) nextSegment(i int, timestamp int64, left int) bool {
	if p.stopped.Load() {
		p.discard()
		return false
	}
	size := p.subpartitions[i].bufferSize()
	b := p.pool.TryRequest(i)
	if b == nil {
		if b = p.beyond(i); b != nil && size < left {
			size = min(left, buffer.Capacity)
		}
	}
	if b == nil {
		p.discard()
		return false
	}
	if timestamp != wire.NoTimestamp {
		p.base = timestamp
	}
	b.SetBase(p.base)
	b.Retain()
	p.commit(i)
	p.count()
	p.writers[i].drop()
	p.writers[i] = writer{buf: b, data: b.Data()[:size], base: p.base}
	p.subpartitions[i].open(b)
	return true
}

// beyond gets a segment to end what was begun, though the pool has none: of the
// overdraft; or one that comes back; or, if the task is needed between two records, in
// excess of the pool. Such a segment has room for all that is left of the record,
// whatever its reader asked for, so that few are needed.
func (p *ResultPartition) beyond(i int) *buffer.Buffer {
	p.FlushAll() // the task is about to wait: readers shall have what there is
	if b := p.pool.Overdraft(i); b != nil {
		return b
	}
	return p.pool.Request(i, p.stop)
}

// Hasten makes an Emit that waits look whether it may exceed the pool
// ([buffer.LocalOptions]). Any goroutine may call it.
func (p *ResultPartition) Hasten() { p.pool.Hasten() }

// commit lets readers see what was written, once the subpartition is told.
func (p *ResultPartition) commit(i int) {
	w := &p.writers[i]
	if n := w.pos - w.committed; n > 0 {
		w.buf.Commit(w.pos)
		w.committed = w.pos
		p.bytes += int64(n)
	}
}

// publish gives the reader of a subpartition what was written.
func (p *ResultPartition) publish(i int) {
	w := &p.writers[i]
	if w.buf == nil || (w.pos == w.committed && w.pos < len(w.data)) {
		return
	}
	p.commit(i)
	if w.pos < len(w.data) {
		p.subpartitions[i].requestFlush()
		return
	}
	p.subpartitions[i].finish()
	w.drop()
}

// drop gives up the task's reference to its segment.
func (w *writer) drop() {
	if w.buf != nil {
		w.buf.Release()
	}
	*w = writer{}
}

// discard drops the segments being filled; nobody will read them.
func (p *ResultPartition) discard() {
	for i := range p.writers {
		p.writers[i].drop()
	}
}

// count lets other goroutines see the counters.
func (p *ResultPartition) count() {
	p.counted.records.Store(p.records)
	p.counted.bytes.Store(p.bytes)
}

// BroadcastEvent publishes what was emitted and adds the event to every
// subpartition. It never waits.
func (p *ResultPartition) BroadcastEvent(e Event) {
	p.eventAllowed(e)
	for i := range p.writers {
		p.commit(i)
		p.subpartitions[i].add(e)
		p.writers[i].drop()
	}
	p.count()
	p.finished = p.finished || e.Last
}

func (p *ResultPartition) eventAllowed(e Event) {
	assert.That(e.Type.IsEvent(), "event of type %d", e.Type)
	assert.That(!p.finished || p.stopped.Load(), "event of type %d after the last", e.Type)
}

// FlushIfRequested publishes what was emitted, if somebody asked for it.
func (p *ResultPartition) FlushIfRequested() {
	if p.flush.Load() {
		p.FlushAll()
	}
}

// FlushAll publishes what was emitted.
func (p *ResultPartition) FlushAll() {
	p.flush.Store(false)
	for i := range p.writers {
		p.publish(i)
	}
	p.count()
}

// RequestFlush asks the task to publish when it next looks between two records.
func (p *ResultPartition) RequestFlush() { p.flush.Store(true) }

// Available says whether a segment can be had without waiting and no subpartition
// has more than its soft limit. After false the pool's listener is called when that
// may have changed.
func (p *ResultPartition) Available() bool { return p.stopped.Load() || p.pool.Available() }

// Fail tells all consumers that this partition ends here with a cause. A task that
// waits in Emit goes on, and what it emits is dropped. Any goroutine may call it; the
// first cause stands.
func (p *ResultPartition) Fail(cause error) {
	if p.stopped.Swap(true) {
		return
	}
	close(p.stop)
	for _, s := range p.subpartitions {
		s.fail(cause)
	}
}

// FailUnread ends the subpartitions that have no reader.
func (p *ResultPartition) FailUnread(cause error) {
	for _, s := range p.subpartitions {
		if !s.attached() {
			s.fail(cause)
		}
	}
}

// Close gives up the task's segments, after its goroutine has left. If the last event
// was broadcast, consumers can read on; else they find [ErrClosed].
func (p *ResultPartition) Close() {
	p.discard()
	if !p.finished {
		p.Fail(ErrClosed)
	}
	p.count()
	p.pool.Close()
}

// Ended says whether all subpartitions have been released or failed.
func (p *ResultPartition) Ended() bool { return p.live.Load() == 0 }

// Finished says whether the last event was broadcast. For the task's goroutine.
func (p *ResultPartition) Finished() bool { return p.finished }

// QueuedBytes is the number of published bytes that no reader has taken.
func (p *ResultPartition) QueuedBytes() int64 {
	var n int64
	for _, s := range p.subpartitions {
		n += s.QueuedBytes()
	}
	return n
}

// Records counts the records that were emitted, up to the last hand-over of a segment.
func (p *ResultPartition) Records() int64 { return p.counted.records.Load() }

// Bytes counts the bytes that were published.
func (p *ResultPartition) Bytes() int64 { return p.counted.bytes.Load() }

// BuffersInUse is the number of segments of the partition that are in somebody's hands.
func (p *ResultPartition) BuffersInUse() int { return p.pool.Used() }

// PoolUsage is which part of its segments is in somebody's hands: 0 to 1, and more with
// overdraft.
func (p *ResultPartition) PoolUsage() float64 {
	return float64(p.pool.Used()) / float64(p.pool.Max())
}

// BackPressured says whether the task would have to wait: [ResultPartition.Available]
// for those who look on.
func (p *ResultPartition) BackPressured() bool { return !p.stopped.Load() && p.pool.Exhausted() }
