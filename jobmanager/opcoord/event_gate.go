package opcoord

import (
	"slices"

	"github.com/weirflow/weir"
)

// EventGate lets events to one subtask pass, or holds them while a checkpoint is
// between the coordinator's snapshot and the subtask's (behaviour §24). Several
// checkpoints may be so at a time. Only its Holder calls it.
type EventGate[E any] struct {
	marked  []weir.CheckpointID // requested, and not ended here; ascending
	closed  []closedGate[E]     // of those the closed ones; ascending
	highest weir.CheckpointID   // ever marked
}

// closedGate is a checkpoint for which the gate is closed, and what was given since,
// until the next one closed it too.
type closedGate[E any] struct {
	checkpoint weir.CheckpointID
	held       []E
}

// Mark notes that a checkpoint was requested. An id that is not above all before is
// ignored, and false returned.
func (g *EventGate[E]) Mark(id weir.CheckpointID) bool {
	if id <= g.highest {
		return false
	}
	g.highest = id
	g.marked = append(g.marked, id)
	return true
}

// Close holds events from now on. It is possible only while the id is marked.
func (g *EventGate[E]) Close(id weir.CheckpointID) bool {
	if !slices.Contains(g.marked, id) {
		return false
	}
	g.closed = append(g.closed, closedGate[E]{checkpoint: id})
	return true
}

// Opened says how Open went.
type Opened uint8

// Results of Open.
const (
	NotMarked Opened = iota // the checkpoint had ended here before: ignored
	NeverSeen               // it is above all that were ever marked
	Done
)

// Open ends a checkpoint here and returns the events that may be sent now, in order.
// Events of a checkpoint that is not the oldest closed one wait for the next older.
func (g *EventGate[E]) Open(id weir.CheckpointID) ([]E, Opened) {
	if id > g.highest {
		return nil, NeverSeen
	}
	at := slices.Index(g.marked, id)
	if at < 0 {
		return nil, NotMarked
	}
	g.marked = slices.Delete(g.marked, at, at+1)
	i := slices.IndexFunc(g.closed, func(c closedGate[E]) bool { return c.checkpoint == id })
	if i < 0 {
		return nil, Done // it was not closed yet, and cannot be any more
	}
	held := g.closed[i].held
	g.closed = slices.Delete(g.closed, i, i+1)
	if i > 0 {
		g.closed[i-1].held = append(g.closed[i-1].held, held...)
		return nil, Done
	}
	return held, Done
}

// Forget makes the gate ignore a checkpoint that ended before it was requested.
func (g *EventGate[E]) Forget(id weir.CheckpointID) { g.highest = max(g.highest, id) }

// Pass says whether an event may be sent at once. If not, the gate holds it.
func (g *EventGate[E]) Pass(event E) bool {
	if len(g.closed) == 0 {
		return true
	}
	last := &g.closed[len(g.closed)-1]
	last.held = append(last.held, event)
	return false
}

// Closed says whether the gate holds events.
func (g *EventGate[E]) Closed() bool { return len(g.closed) > 0 }
