package opcoord

import (
	"fmt"
	"slices"

	"github.com/weirflow/weir"
)

// requested begins the coordinator's part of a checkpoint: the gates note it.
func (h *Holder) requested(ev CheckpointRequested) {
	if ev.Checkpoint <= h.newest {
		// Its abort overtook it, or a newer one did.
		h.note("not above %d: %s", h.newest, ev)
		h.emit(SnapshotFailed{ev.Checkpoint, h.operator, fmt.Sprintf("checkpoint %d is over", ev.Checkpoint)})
		return
	}
	h.newest = ev.Checkpoint
	for i := range h.subtasks {
		h.subtasks[i].gate.Mark(ev.Checkpoint)
	}
	h.snapshots = append(h.snapshots, &snapshot{checkpoint: ev.Checkpoint})
	h.emit(SnapshotCoordinator{Checkpoint: h.newest})
}

// snapshotTaken closes the gates: what the coordinator gives from now on is not part
// of its snapshot.
func (h *Holder) snapshotTaken(ev SnapshotTaken) {
	sn := h.find(ev.Checkpoint)
	if sn == nil || sn.taken {
		h.note("not awaited: %s", ev)
		return
	}
	for i := range h.subtasks {
		s := &h.subtasks[i]
		if !s.gate.Close(ev.Checkpoint) {
			h.fail(sn, fmt.Sprintf("subtask %d was restarted meanwhile", i))
			h.open(ev.Checkpoint)
			return
		}
	}
	sn.taken, sn.state, sn.awaits = true, ev.State, map[uint64]struct{}{}
	for i := range h.subtasks {
		for _, seq := range h.subtasks[i].unconfirmed {
			sn.awaits[seq] = struct{}{}
		}
	}
	h.reportIfComplete(sn)
}

func (h *Holder) reportIfComplete(sn *snapshot) {
	if sn.taken && len(sn.awaits) == 0 {
		h.drop(sn)
		h.emit(Snapshotted{sn.checkpoint, h.operator, sn.state})
	}
}

// snapshotRefused fails the job over: a coordinator that cannot snapshot is broken.
func (h *Holder) snapshotRefused(ev SnapshotRefused) {
	sn := h.find(ev.Checkpoint)
	if sn == nil || sn.taken {
		h.note("not awaited: %s", ev)
		return
	}
	h.fail(sn, ev.Message)
	h.open(ev.Checkpoint)
	h.emit(FailJob{weir.Failure{
		Message: "snapshot of the operator's coordinator: " + ev.Message, Fault: weir.FaultUser, Operator: h.name, Subtask: -1,
	}})
}

// fail reports that there is no snapshot. The checkpoint's abort opens the gates.
func (h *Holder) fail(sn *snapshot, message string) {
	h.drop(sn)
	h.emit(SnapshotFailed{sn.checkpoint, h.operator, message})
}

// barrierSent opens one gate: the subtask's snapshot is behind it.
func (h *Holder) barrierSent(ev BarrierSent) {
	s := h.current(ev.Attempt)
	if s == nil || !s.running {
		h.note("not a running attempt: %s", ev)
		return
	}
	events, opened := s.gate.Open(ev.Checkpoint)
	switch opened {
	case NeverSeen:
		h.note("never requested: %s", ev)
	case NotMarked:
		h.note("over: %s", ev)
	case Done:
		h.release(s, events)
	}
}

// ended opens all gates for a checkpoint that completed or was aborted.
func (h *Holder) ended(id weir.CheckpointID) {
	if sn := h.find(id); sn != nil {
		h.drop(sn) // nobody waits for it any more
	}
	h.newest = max(h.newest, id)
	h.open(id)
	for i := range h.subtasks {
		h.subtasks[i].gate.Forget(id)
	}
}

func (h *Holder) open(id weir.CheckpointID) {
	for i := range h.subtasks {
		s := &h.subtasks[i]
		if events, opened := s.gate.Open(id); opened == Done {
			h.release(s, events)
		}
	}
}

func (h *Holder) release(s *subtask, events [][]byte) {
	h.held -= size(events)
	for _, e := range events {
		h.send(s, e)
	}
}

func (h *Holder) find(id weir.CheckpointID) *snapshot {
	for _, sn := range h.snapshots {
		if sn.checkpoint == id {
			return sn
		}
	}
	return nil
}

func (h *Holder) drop(sn *snapshot) {
	if i := slices.Index(h.snapshots, sn); i >= 0 {
		h.snapshots = slices.Delete(h.snapshots, i, i+1)
	}
}
