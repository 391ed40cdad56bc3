package partition

import (
	"github.com/weirflow/weir"
)

// ResultPartition is one output of a task. Emit, Watermark, Status, BroadcastEvent,
// FlushIfRequested and FlushAll are for the task's goroutine; the rest is for any.
type ResultPartition struct{}

// Emit appends one record, whose payload is copied. It may wait for a buffer.
func (p *ResultPartition) Emit(hash uint64, timestamp int64, payload []byte) {}

// Watermark sends a watermark to every subpartition.
func (p *ResultPartition) Watermark(w weir.Watermark) {}

// Status tells every subpartition that this subtask became idle or active.
func (p *ResultPartition) Status(idle bool) {}

// BroadcastEvent publishes what was emitted and adds the event to every
// subpartition. It never waits.
func (p *ResultPartition) BroadcastEvent(e Event) {}

// FlushIfRequested publishes what was emitted, if the flush goroutine asked for it.
func (p *ResultPartition) FlushIfRequested() {}

// FlushAll publishes what was emitted.
func (p *ResultPartition) FlushAll() {}

// Available says whether a record can be emitted without waiting. When it turned
// false, the task's wake function is called once it is true again.
func (p *ResultPartition) Available() bool { return true }

// QueuedBytes is the number of published bytes that no reader has taken.
func (p *ResultPartition) QueuedBytes() int64 { return 0 }

// Records and Bytes count what was emitted and published.
func (p *ResultPartition) Records() int64 { return 0 }

// Bytes counts the bytes of what was published.
func (p *ResultPartition) Bytes() int64 { return 0 }
