package partition

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/wire"
)

// Event is what stands between segments: bytes and how they are treated. The bytes
// do not change any more.
type Event struct {
	Type  wire.DataType // any but TypeNone and TypeData
	Bytes []byte
	// Last says that nothing follows it in this partition.
	Last bool
	// Barrier is the checkpoint of a barrier, by which the event is found in a queue.
	Barrier weir.CheckpointID
}

// NewEvent encodes an event. Barriers block or overtake, as typ says.
func NewEvent(typ wire.DataType, e wire.Event) Event {
	_, last := e.(wire.EndOfPartition)
	b, _ := e.(wire.Barrier)
	return Event{Type: typ, Bytes: wire.AppendEvent(nil, e), Last: last, Barrier: b.ID}
}
