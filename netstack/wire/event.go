package wire

import (
	"fmt"
	"math"
	"time"

	"github.com/weirflow/weir"
)

const maxLocation = 1024 // bytes of a barrier's location

// Event is what stands between the elements of a channel: Barrier, CancelBarrier,
// EndOfData, EndOfPartition or EndOfChannelState.
//
//sumtype:decl
type Event interface {
	event()
	String() string
}

// Barrier separates what belongs to a checkpoint from what does not.
type Barrier weir.Barrier

// CancelBarrier says that no barrier of this checkpoint will follow.
type CancelBarrier struct{ ID weir.CheckpointID }

// EndOfData says that the producer's operators have no more records.
type EndOfData struct{ Drain bool } // timers and windows are to fire

// EndOfPartition is the last thing of a channel.
type EndOfPartition struct{}

// EndOfChannelState ends what was captured of a channel.
type EndOfChannelState struct{}

func (Barrier) event()           {}
func (CancelBarrier) event()     {}
func (EndOfData) event()         {}
func (EndOfPartition) event()    {}
func (EndOfChannelState) event() {}

func (e Barrier) String() string         { return weir.Barrier(e).String() }
func (e CancelBarrier) String() string   { return fmt.Sprintf("cancel barrier %d", e.ID) }
func (e EndOfData) String() string       { return fmt.Sprintf("end of data, drain=%t", e.Drain) }
func (EndOfPartition) String() string    { return "end of partition" }
func (EndOfChannelState) String() string { return "end of channel state" }

// Numbers of the events in the union.
const (
	numBarrier = iota + 1
	numCancelBarrier
	numEndOfData
	numEndOfPartition
	numEndOfChannelState
)

// AppendEvent appends an event's bytes.
func AppendEvent(b []byte, e Event) []byte {
	switch e := e.(type) {
	case Barrier:
		return appendMessage(b, numBarrier, e.fields)
	case CancelBarrier:
		return appendMessage(b, numCancelBarrier, func(b []byte) []byte { return appendUint(b, 1, uint64(e.ID)) })
	case EndOfData:
		return appendMessage(b, numEndOfData, func(b []byte) []byte { return appendBool(b, 1, e.Drain) })
	case EndOfPartition:
		return append(appendTag(b, numEndOfPartition, typeBytes), 0)
	case EndOfChannelState:
		return append(appendTag(b, numEndOfChannelState, typeBytes), 0)
	}
	panic("wire: unknown event")
}

func (e Barrier) fields(b []byte) []byte {
	b = appendUint(b, 1, uint64(e.ID))
	b = appendUint(b, 2, uint64(max(0, e.Age)))
	b = appendUint(b, 3, uint64(e.Options.Kind))
	b = appendUint(b, 4, uint64(e.Options.Alignment))
	b = appendUint(b, 5, uint64(max(0, e.Options.Timeout)))
	return appendBytes(b, 6, e.Options.Location)
}

// DecodeEvent reads an event. It keeps nothing of b.
func DecodeEvent(b []byte) (Event, error) {
	if len(b) > MaxEvent {
		return nil, fmt.Errorf("event of %d bytes: %w", len(b), ErrTooLarge)
	}
	num, content, err := only(b)
	if err != nil {
		return nil, err
	}
	f := fields{b: content}
	var e Event
	switch num {
	case numBarrier:
		e = f.barrier()
	case numCancelBarrier:
		e = f.cancelBarrier()
	case numEndOfData:
		e = f.endOfData()
	case numEndOfPartition:
		e = EndOfPartition{}
		f.empty()
	case numEndOfChannelState:
		e = EndOfChannelState{}
		f.empty()
	default:
		return nil, fmt.Errorf("event %d: %w", num, ErrMalformed)
	}
	if f.err != nil {
		return nil, f.err
	}
	return e, nil
}

// AddAge adds to a barrier's age the time that the event spent on this side
// (DECISIONS 12). Other events, and what is no event, are returned as they are.
func AddAge(event []byte, spent time.Duration) []byte {
	if len(event) == 0 || event[0] != numBarrier<<3|typeBytes || spent <= 0 {
		return event
	}
	e, err := DecodeEvent(event)
	b, ok := e.(Barrier)
	if err != nil || !ok || b.Age > math.MaxInt64-spent {
		return event
	}
	b.Age += spent
	return AppendEvent(nil, b)
}

func (f *fields) barrier() Barrier {
	var e Barrier
	for x, ok := f.next(); ok; x, ok = f.next() {
		switch x.num {
		case 1:
			e.ID = weir.CheckpointID(f.number(x, math.MaxInt64))
		case 2:
			e.Age = time.Duration(f.number(x, math.MaxInt64))
		case 3:
			e.Options.Kind = weir.SnapshotKind(f.number(x, uint64(weir.TerminateSavepoint)))
		case 4:
			e.Options.Alignment = weir.Alignment(f.number(x, uint64(weir.ForcedAligned)))
		case 5:
			e.Options.Timeout = time.Duration(f.number(x, math.MaxInt64))
		case 6:
			e.Options.Location = string(f.data(x, maxLocation))
		default:
			f.unknown(x)
		}
	}
	if e.ID == weir.NoCheckpoint {
		f.fail("barrier without id: %w", ErrMalformed)
	}
	return e
}

func (f *fields) cancelBarrier() CancelBarrier {
	var e CancelBarrier
	for x, ok := f.next(); ok; x, ok = f.next() {
		if x.num != 1 {
			f.unknown(x)
			break
		}
		e.ID = weir.CheckpointID(f.number(x, math.MaxInt64))
	}
	if e.ID == weir.NoCheckpoint {
		f.fail("cancellation without id: %w", ErrMalformed)
	}
	return e
}

func (f *fields) endOfData() EndOfData {
	var e EndOfData
	for x, ok := f.next(); ok; x, ok = f.next() {
		if x.num != 1 {
			f.unknown(x)
			break
		}
		e.Drain = f.flag(x)
	}
	return e
}

// empty takes a message without fields.
func (f *fields) empty() {
	if x, ok := f.next(); ok {
		f.unknown(x)
	}
}

// IsEndOfPartition says whether an event's bytes are the last of a channel.
func IsEndOfPartition(event []byte) bool {
	return len(event) > 0 && event[0] == numEndOfPartition<<3|typeBytes
}
