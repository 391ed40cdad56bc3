package jobmaster

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// Event is something that happened to the job, as told to [Core.Step].
//
//sumtype:decl
type Event interface {
	fmt.Stringer
	event()
}

// Slot is a slot that the job was given.
type Slot struct {
	execgraph.Location
	DataAddress string // of its TaskManager
}

// What others do.
type (
	// Start is the first event.
	Start struct {
		// Completed is what the chain holds, oldest first; or, if it holds nothing, the
		// snapshot that the job is to start from.
		Completed []checkpointing.CompletedCheckpoint
		// Resumed says that the job ran before, under another leader, and Restarts how
		// often it was restarted then.
		Resumed  bool
		Restarts int
		// Stop is a stop that another leader began and that is not over, or nil.
		Stop *Stop
	}
	// CancelRequested ends the job.
	CancelRequested struct{}
	// SnapshotRequested asks for a checkpoint or a savepoint. Answer: SnapshotEnded.
	SnapshotRequested struct {
		Request   string // not in use
		Kind      weir.SnapshotKind
		Directory string // of a savepoint: where its own directory is made, absolute
	}
	// StopRequested asks for the end of the job with a savepoint. Answer: StopEnded.
	StopRequested struct{ Stop Stop }
	// DataEnded says that an attempt waits for a last checkpoint.
	DataEnded struct{ Attempt weir.AttemptID }
	// SlotsGranted answers RequestSlots, with slots in the order of its wants.
	SlotsGranted struct {
		Request uint64
		Slots   []Slot
	}
	// SlotsShort says that a request waits, and for what.
	SlotsShort struct {
		Request uint64
		Text    string
	}
	// TaskManagerLost says that a TaskManager is gone, with our slots there.
	TaskManagerLost struct {
		TaskManager weir.TaskManagerID
		Incarnation weir.Incarnation
		Reason      string
	}
	// TaskState is a TaskManager's report on an attempt.
	TaskState struct {
		Attempt weir.AttemptID
		State   rpc.TaskState
		Failure *weir.Failure
	}
	// TimerFired answers ArmTimer.
	TimerFired struct{ Key TimerKey }
)

// Answers to actions, and what is passed on to a machine inside.
type (
	// SnapshotLoaded answers LoadSnapshot.
	SnapshotLoaded struct {
		Run      uint64
		Snapshot *snapshotmeta.Snapshot
		// Coordinators are the states of the operators' coordinators.
		Coordinators map[weir.OperatorID][]byte
	}
	// SnapshotUnreadable answers LoadSnapshot.
	SnapshotUnreadable struct {
		Run     uint64
		Failure weir.Failure
	}
	// CoordinatorStarted answers StartCoordinator. Splits are those to deploy each
	// subtask with; nil after a restore.
	CoordinatorStarted struct {
		Run      uint64
		Operator weir.OperatorID
		Splits   [][][]byte
	}
	// CoordinatorBroke says that an operator's coordinator could not be started, or
	// failed later.
	CoordinatorBroke struct {
		Run      uint64
		Operator weir.OperatorID
		Failure  weir.Failure
	}
	// HookRestored answers RestoreHooks for one master hook.
	HookRestored struct {
		Run  uint64
		Hook string
	}
	// HookBroke says that a master hook could not be made or restored, or panicked.
	HookBroke struct {
		Hook    string
		Failure weir.Failure
	}
	// StopRecorded answers RecordStop. Failure says why it cannot be recorded ever.
	StopRecorded struct{ Request, Failure string }
	// Checkpointing passes an event to the checkpoint coordinator.
	Checkpointing struct{ Event checkpointing.Event }
	// Coordination passes an event to the event gates of an operator. Run is that of
	// the coordinator that caused it, or 0 if a subtask did.
	Coordination struct {
		Run      uint64
		Operator weir.OperatorID
		Event    opcoord.Event
	}
)

func (Start) event()              {}
func (CancelRequested) event()    {}
func (SnapshotRequested) event()  {}
func (StopRequested) event()      {}
func (StopRecorded) event()       {}
func (DataEnded) event()          {}
func (SlotsGranted) event()       {}
func (SlotsShort) event()         {}
func (TaskManagerLost) event()    {}
func (TaskState) event()          {}
func (TimerFired) event()         {}
func (SnapshotLoaded) event()     {}
func (SnapshotUnreadable) event() {}
func (CoordinatorStarted) event() {}
func (CoordinatorBroke) event()   {}
func (HookRestored) event()       {}
func (HookBroke) event()          {}
func (Checkpointing) event()      {}
func (Coordination) event()       {}

func (e Start) String() string         { return fmt.Sprintf("start with %d completed", len(e.Completed)) }
func (CancelRequested) String() string { return "cancel" }
func (e SnapshotRequested) String() string {
	return fmt.Sprintf("request %q for a %s", e.Request, e.Kind)
}
func (e StopRequested) String() string {
	return fmt.Sprintf("request %q to stop with a %s", e.Stop.Request, e.Stop.Kind)
}
func (e StopRecorded) String() string {
	return fmt.Sprintf("stop %q recorded%s", e.Request, gapped(e.Failure))
}
func (e DataEnded) String() string {
	return fmt.Sprintf("%s has reached the end of its data", e.Attempt)
}
func (e SlotsGranted) String() string {
	return fmt.Sprintf("request %d: %d slots", e.Request, len(e.Slots))
}
func (e SlotsShort) String() string { return fmt.Sprintf("request %d waits: %s", e.Request, e.Text) }
func (e TaskManagerLost) String() string {
	return fmt.Sprintf("task manager %.8s.%d lost: %s", e.TaskManager, e.Incarnation, e.Reason)
}
func (e TaskState) String() string  { return fmt.Sprintf("%s is %s", e.Attempt, e.State) }
func (e TimerFired) String() string { return fmt.Sprintf("timer %s", e.Key) }
func (e SnapshotLoaded) String() string {
	return fmt.Sprintf("snapshot %d loaded", e.Snapshot.Header.Checkpoint)
}
func (e SnapshotUnreadable) String() string {
	return "snapshot unreadable: " + e.Failure.Error()
}
func (e CoordinatorStarted) String() string {
	return fmt.Sprintf("coordinator %.8s started", e.Operator)
}
func (e HookRestored) String() string { return fmt.Sprintf("hook %q restored", e.Hook) }
func (e HookBroke) String() string {
	return fmt.Sprintf("hook %q broke: %s", e.Hook, e.Failure.Error())
}
func (e CoordinatorBroke) String() string {
	return fmt.Sprintf("coordinator %.8s broke: %s", e.Operator, e.Failure.Error())
}
func (e Checkpointing) String() string { return e.Event.String() }
func (e Coordination) String() string  { return e.Event.String() }
