package opcoord

import (
	"fmt"

	"github.com/weirflow/weir"
)

// Action is what [Holder.Step] wants done.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	action()
}

type (
	// Send sends an event to a subtask's operator (rpc.OperatorEvent). Answer:
	// EventConfirmed, also if it could not be sent.
	Send struct {
		Attempt  weir.AttemptID
		Operator weir.OperatorID
		Seq      uint64 // grows by one with each event of the operator
		Event    []byte
	}
	// EventAccepted answers EventGiven: the event was sent or waits in the gate.
	EventAccepted struct{ Token Token }
	// EventRefused answers EventGiven: the subtask does not run.
	EventRefused struct {
		Token   Token
		Message string
	}
	// Deliver hands a subtask's event to the coordinator.
	Deliver struct {
		Subtask int32
		Event   []byte
	}
	// SnapshotCoordinator asks the coordinator for its state. Answer: SnapshotTaken or
	// SnapshotRefused, in the order of its sends. It may never come.
	SnapshotCoordinator struct{ Checkpoint weir.CheckpointID }
	// Snapshotted is the coordinator's part of the checkpoint
	// (checkpointing.CoordinatorSnapshotted).
	Snapshotted struct {
		Checkpoint weir.CheckpointID
		Operator   weir.OperatorID
		State      []byte
	}
	// SnapshotFailed says that there is none (checkpointing.CoordinatorFailed).
	SnapshotFailed struct {
		Checkpoint weir.CheckpointID
		Operator   weir.OperatorID
		Message    string
	}
	// FailAttempt fails an attempt, because an event to it was lost.
	FailAttempt struct {
		Attempt weir.AttemptID
		Failure weir.Failure
	}
	// FailJob fails the job over, because its coordinator failed.
	FailJob struct{ Failure weir.Failure }
	// Note says what was ignored, and why.
	Note struct{ Text string }
)

func (Send) action()                {}
func (EventAccepted) action()       {}
func (EventRefused) action()        {}
func (Deliver) action()             {}
func (SnapshotCoordinator) action() {}
func (Snapshotted) action()         {}
func (SnapshotFailed) action()      {}
func (FailAttempt) action()         {}
func (FailJob) action()             {}
func (Note) action()                {}

func (a Send) String() string {
	return fmt.Sprintf("send event %d to %s, %d bytes", a.Seq, a.Attempt, len(a.Event))
}
func (a EventAccepted) String() string { return fmt.Sprintf("accept event %d", a.Token) }
func (a EventRefused) String() string {
	return fmt.Sprintf("refuse event %d: %s", a.Token, a.Message)
}
func (a Deliver) String() string {
	return fmt.Sprintf("deliver event of subtask %d, %d bytes", a.Subtask, len(a.Event))
}
func (a SnapshotCoordinator) String() string {
	return fmt.Sprintf("snapshot coordinator for %d", a.Checkpoint)
}
func (a Snapshotted) String() string {
	return fmt.Sprintf("snapshotted %d, %d bytes", a.Checkpoint, len(a.State))
}
func (a SnapshotFailed) String() string {
	return fmt.Sprintf("snapshot %d failed: %s", a.Checkpoint, a.Message)
}
func (a FailAttempt) String() string {
	return fmt.Sprintf("fail %s: %s", a.Attempt, a.Failure.Message)
}
func (a FailJob) String() string { return "fail job: " + a.Failure.Message }
func (a Note) String() string    { return "note: " + a.Text }
