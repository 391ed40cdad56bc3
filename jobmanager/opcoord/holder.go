package opcoord

import (
	"fmt"
	"slices"

	"github.com/weirflow/weir"
)

// maxHeldBytes is how much the gates of one operator hold; more is refused, so that
// a coordinator that talks while checkpoints hang cannot take the memory.
const maxHeldBytes = 64 << 20

// Holder is the machine between one operator's coordinator and its subtasks. Only
// the job's loop calls it.
type Holder struct {
	operator weir.OperatorID
	name     string
	subtasks []subtask
	lastSeq  uint64
	held     int // bytes in all gates
	// snapshots are those requested and not reported; ascending.
	snapshots []*snapshot
	newest    weir.CheckpointID // the highest ever requested or ended
	out       []Action          // of the step under way
}

type subtask struct {
	attempt     weir.AttemptID
	running     bool
	gate        EventGate[[]byte]
	unconfirmed []uint64 // events sent and not confirmed; ascending
}

type snapshot struct {
	checkpoint weir.CheckpointID
	taken      bool
	state      []byte
	awaits     map[uint64]struct{} // events sent before it and not confirmed
}

// NewHolder returns the holder of an operator, whose subtasks do not run yet.
func NewHolder(operator weir.OperatorID, name string, parallelism int) *Holder {
	return &Holder{operator: operator, name: name, subtasks: make([]subtask, parallelism)}
}

// Step takes an event and returns what to do, in order.
func (h *Holder) Step(ev Event) []Action {
	h.out = nil
	switch ev := ev.(type) {
	case SubtaskRunning:
		h.subtaskRunning(ev)
	case SubtaskEnded:
		h.subtaskEnded(ev)
	case Reset:
		h.reset()
	case EventGiven:
		h.eventGiven(ev)
	case EventConfirmed:
		h.eventConfirmed(ev)
	case EventReceived:
		if s := h.current(ev.Attempt); s == nil || !s.running {
			h.note("not a running attempt: %s", ev)
		} else {
			h.emit(Deliver{Subtask: ev.Attempt.Subtask, Event: ev.Event})
		}
	case CheckpointRequested:
		h.requested(ev)
	case SnapshotTaken:
		h.snapshotTaken(ev)
	case SnapshotRefused:
		h.snapshotRefused(ev)
	case BarrierSent:
		h.barrierSent(ev)
	case CheckpointAborted:
		h.ended(ev.Checkpoint)
	case CheckpointCompleted:
		h.ended(ev.Checkpoint)
	}
	return h.out
}

// subtaskRunning puts an attempt in its subtask's place. Its gate is new: no
// checkpoint that is under way waits for this attempt.
func (h *Holder) subtaskRunning(ev SubtaskRunning) {
	i := ev.Attempt.Subtask
	if i < 0 || int(i) >= len(h.subtasks) {
		h.note("no such subtask: %s", ev)
		return
	}
	if h.subtasks[i].running && h.subtasks[i].attempt == ev.Attempt {
		h.note("known already: %s", ev)
		return
	}
	h.replace(&h.subtasks[i])
	h.subtasks[i].attempt, h.subtasks[i].running = ev.Attempt, true
}

func (h *Holder) subtaskEnded(ev SubtaskEnded) {
	s := h.current(ev.Attempt)
	if s == nil {
		h.note("not the current attempt: %s", ev)
		return
	}
	h.replace(s)
}

// replace empties a subtask's place. What it had not confirmed is lost to it, and to
// every snapshot that counts on it.
func (h *Holder) replace(s *subtask) {
	lost := s.unconfirmed
	for _, held := range s.gate.closed {
		h.held -= size(held.held)
	}
	*s = subtask{attempt: s.attempt, gate: EventGate[[]byte]{highest: h.newest}}
	for _, seq := range lost {
		h.loseEvent(seq, fmt.Sprintf("an event to %s was not confirmed when it ended", s.attempt))
	}
}

func (h *Holder) reset() {
	for i := range h.subtasks {
		h.subtasks[i] = subtask{attempt: h.subtasks[i].attempt, gate: EventGate[[]byte]{highest: h.newest}}
	}
	for _, s := range slices.Clone(h.snapshots) {
		h.fail(s, "the operator is restored")
	}
	h.held = 0
}

func (h *Holder) eventGiven(ev EventGiven) {
	switch {
	case ev.Subtask < 0 || int(ev.Subtask) >= len(h.subtasks):
		h.emit(EventRefused{ev.Token, fmt.Sprintf("operator %q has no subtask %d", h.name, ev.Subtask)})
		return
	case !h.subtasks[ev.Subtask].running:
		h.emit(EventRefused{ev.Token, fmt.Sprintf("subtask %d of operator %q does not run", ev.Subtask, h.name)})
		return
	case h.held+len(ev.Event) > maxHeldBytes && h.subtasks[ev.Subtask].gate.Closed():
		h.emit(EventRefused{ev.Token, fmt.Sprintf("a checkpoint holds back %d bytes of events of operator %q", h.held, h.name)})
		return
	}
	s := &h.subtasks[ev.Subtask]
	h.emit(EventAccepted{ev.Token})
	if s.gate.Pass(ev.Event) {
		h.send(s, ev.Event)
		return
	}
	h.held += len(ev.Event)
}

func (h *Holder) send(s *subtask, event []byte) {
	h.lastSeq++
	s.unconfirmed = append(s.unconfirmed, h.lastSeq)
	h.emit(Send{Attempt: s.attempt, Operator: h.operator, Seq: h.lastSeq, Event: event})
}

func (h *Holder) eventConfirmed(ev EventConfirmed) {
	s := h.current(ev.Attempt)
	at := -1
	if s != nil {
		at = slices.Index(s.unconfirmed, ev.Seq)
	}
	if at < 0 {
		h.note("not awaited: %s", ev)
		return
	}
	s.unconfirmed = slices.Delete(s.unconfirmed, at, at+1)
	if ev.Error != "" {
		message := fmt.Sprintf("an event of the coordinator was lost: %s", ev.Error)
		h.loseEvent(ev.Seq, message)
		h.emit(FailAttempt{ev.Attempt, weir.Failure{Message: message, Operator: h.name, Subtask: ev.Attempt.Subtask}})
		return
	}
	for _, sn := range slices.Clone(h.snapshots) {
		delete(sn.awaits, ev.Seq)
		h.reportIfComplete(sn)
	}
}

// loseEvent fails the snapshots that count on an event.
func (h *Holder) loseEvent(seq uint64, message string) {
	for _, sn := range slices.Clone(h.snapshots) {
		if _, counts := sn.awaits[seq]; counts {
			h.fail(sn, message)
		}
	}
}

// current returns the subtask of an attempt, if that is its current one.
func (h *Holder) current(a weir.AttemptID) *subtask {
	if a.Subtask < 0 || int(a.Subtask) >= len(h.subtasks) || h.subtasks[a.Subtask].attempt != a {
		return nil
	}
	return &h.subtasks[a.Subtask]
}

func (h *Holder) emit(a ...Action) { h.out = append(h.out, a...) }

func (h *Holder) note(format string, args ...any) {
	h.emit(Note{Text: fmt.Sprintf(format, args...)})
}

func size(events [][]byte) (n int) {
	for _, e := range events {
		n += len(e)
	}
	return n
}
