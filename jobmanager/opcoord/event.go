package opcoord

import (
	"fmt"

	"github.com/weirflow/weir"
)

// Token names one call of the coordinator's goroutine, which waits for its answer.
type Token uint64

// Event is something that happened, as told to [Holder.Step].
//
//sumtype:decl
type Event interface {
	fmt.Stringer
	event()
}

type (
	// SubtaskRunning says that an attempt runs and may be sent events.
	SubtaskRunning struct{ Attempt weir.AttemptID }
	// SubtaskEnded says that an attempt ended in any way.
	SubtaskEnded struct{ Attempt weir.AttemptID }
	// Reset says that the operator is restored: gates open, held events are dropped.
	Reset struct{}
	// EventGiven is an event that the coordinator wants to send to a subtask. It is
	// answered by EventRefused or, in the end, by Send.
	EventGiven struct {
		Token   Token
		Subtask int32
		Event   []byte
	}
	// EventConfirmed answers Send.
	EventConfirmed struct {
		Attempt weir.AttemptID
		Seq     uint64
		Error   string // empty: the operator has it
	}
	// EventReceived is an event of a subtask to the coordinator.
	EventReceived struct {
		Attempt weir.AttemptID
		Event   []byte
	}
	// CheckpointRequested asks for the coordinator's snapshot.
	CheckpointRequested struct{ Checkpoint weir.CheckpointID }
	// SnapshotTaken answers SnapshotCoordinator. Events given before it are part of
	// the snapshot, those given after it are not.
	SnapshotTaken struct {
		Checkpoint weir.CheckpointID
		State      []byte
	}
	// SnapshotRefused answers SnapshotCoordinator: the coordinator failed.
	SnapshotRefused struct {
		Checkpoint weir.CheckpointID
		Message    string
	}
	// BarrierSent says that the subtask's barrier is in its output.
	BarrierSent struct {
		Attempt    weir.AttemptID
		Checkpoint weir.CheckpointID
	}
	// CheckpointAborted and CheckpointCompleted say how a checkpoint ended.
	CheckpointAborted   struct{ Checkpoint weir.CheckpointID }
	CheckpointCompleted struct{ Checkpoint weir.CheckpointID }
)

func (SubtaskRunning) event()      {}
func (SubtaskEnded) event()        {}
func (Reset) event()               {}
func (EventGiven) event()          {}
func (EventConfirmed) event()      {}
func (EventReceived) event()       {}
func (CheckpointRequested) event() {}
func (SnapshotTaken) event()       {}
func (SnapshotRefused) event()     {}
func (BarrierSent) event()         {}
func (CheckpointAborted) event()   {}
func (CheckpointCompleted) event() {}

func (e SubtaskRunning) String() string { return fmt.Sprintf("%s runs", e.Attempt) }
func (e SubtaskEnded) String() string   { return fmt.Sprintf("%s ended", e.Attempt) }
func (Reset) String() string            { return "reset" }
func (e EventGiven) String() string {
	return fmt.Sprintf("event %d for subtask %d, %d bytes", e.Token, e.Subtask, len(e.Event))
}
func (e EventConfirmed) String() string {
	if e.Error != "" {
		return fmt.Sprintf("event %d lost at %s: %s", e.Seq, e.Attempt, e.Error)
	}
	return fmt.Sprintf("event %d confirmed by %s", e.Seq, e.Attempt)
}
func (e EventReceived) String() string {
	return fmt.Sprintf("event of %s, %d bytes", e.Attempt, len(e.Event))
}
func (e CheckpointRequested) String() string {
	return fmt.Sprintf("checkpoint %d requested", e.Checkpoint)
}
func (e SnapshotTaken) String() string {
	return fmt.Sprintf("snapshot %d taken, %d bytes", e.Checkpoint, len(e.State))
}
func (e SnapshotRefused) String() string {
	return fmt.Sprintf("snapshot %d refused: %s", e.Checkpoint, e.Message)
}
func (e BarrierSent) String() string {
	return fmt.Sprintf("barrier %d sent by %s", e.Checkpoint, e.Attempt)
}
func (e CheckpointAborted) String() string { return fmt.Sprintf("checkpoint %d aborted", e.Checkpoint) }
func (e CheckpointCompleted) String() string {
	return fmt.Sprintf("checkpoint %d completed", e.Checkpoint)
}
