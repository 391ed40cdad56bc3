package task

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
)

// output is a result partition as the chain sees it: it suspends the chain when the
// partition has no room, and counts the time that the chain waits in it.
type output struct {
	p    *partition.ResultPartition
	task *Task
	full bool
	seen int64 // the partition's count of handed-over records when it was last looked at
}

var _ operator.Output = (*output)(nil)

// Emit appends one record.
func (o *output) Emit(hash uint64, timestamp int64, payload []byte) {
	if o.full {
		o.emitFull(hash, timestamp, payload)
		return
	}
	if o.p.Emit(hash, timestamp, payload) {
		o.look()
	}
}

// Appender is the partition's. What it appends fills no segment, so there is nothing to
// look after.
func (o *output) Appender() *partition.Appender { return o.p.Appender() }

// EmitTo appends one record to a subpartition.
func (o *output) EmitTo(subpartition int, timestamp int64, payload []byte) {
	waits := o.full && !o.p.Available()
	if waits {
		o.task.split.enter(hardBackPressured, time.Now())
	}
	o.p.EmitTo(subpartition, timestamp, payload)
	if waits {
		o.task.split.enter(busy, time.Now())
	}
	o.look()
}

// Subpartitions is the number of consumers' subtasks.
func (o *output) Subpartitions() int { return o.p.Subpartitions() }

// emitFull emits into a partition that had no room: the record was begun before that,
// so it may wait.
func (o *output) emitFull(hash uint64, timestamp int64, payload []byte) {
	if !o.p.Available() {
		o.task.split.enter(hardBackPressured, time.Now())
		o.p.Emit(hash, timestamp, payload)
		o.task.split.enter(busy, time.Now())
	} else {
		o.p.Emit(hash, timestamp, payload)
	}
	o.look()
}

// look finds out whether the partition has room for more. That can only have changed
// when a segment was handed over, and the partition's count with it; asking takes a
// lock, looking at the count does not.
func (o *output) look() {
	o.p.FlushIfRequested()
	n := o.p.Records()
	if n == o.seen && !o.full {
		return
	}
	o.seen = n
	o.full = !o.p.Available()
	if o.full {
		o.task.suspend.Store(true)
	}
}

// Watermark sends a watermark.
func (o *output) Watermark(w weir.Watermark) {
	o.p.Watermark(w)
	o.look()
}

// Status sends a status.
func (o *output) Status(idle bool) {
	o.p.Status(idle)
	o.look()
}

// available says whether every output has room for a record.
func (t *Task) available() bool {
	for _, o := range t.outputs {
		if !o.p.Available() {
			return false
		}
	}
	return true
}

// broadcast adds an event to every output, unless they have ended.
func (t *Task) broadcast(typ wire.DataType, e wire.Event) {
	if t.ended {
		return
	}
	ev := partition.NewEvent(typ, e)
	for _, o := range t.outputs {
		o.p.BroadcastEvent(ev)
	}
}

func (t *Task) flushIfRequested() {
	for _, o := range t.outputs {
		o.p.FlushIfRequested()
	}
}

func (t *Task) flushAll() {
	for _, o := range t.outputs {
		o.p.FlushAll()
	}
}

// CancelBarrier sends a cancellation marker.
func (b barriers) CancelBarrier(id weir.CheckpointID) {
	b.t.broadcast(wire.TypeEvent, wire.CancelBarrier{ID: id})
}
