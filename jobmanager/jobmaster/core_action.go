package jobmaster

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// Action is what [Core.Step] wants done.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	action()
}

// TimerKind says what a timer of the job is for.
type TimerKind uint8

// Timers.
const (
	CheckpointTimer TimerKind = iota // the checkpoint coordinator's
	RestartTimer                     // the delay before a restart is over
	SlotTimer                        // slots were waited for long enough
	LastTimer                        // the last checkpoint has failed: another one is due
)

// TimerKey names a timer. Keys are never reused.
type TimerKey struct {
	Kind       TimerKind
	N          uint64                 // of RestartTimer, SlotTimer and LastTimer
	Checkpoint checkpointing.TimerKey // of CheckpointTimer
}

func (k TimerKey) String() string {
	switch k.Kind {
	case RestartTimer:
		return fmt.Sprintf("restart/%d", k.N)
	case SlotTimer:
		return fmt.Sprintf("slots/%d", k.N)
	case LastTimer:
		return fmt.Sprintf("last/%d", k.N)
	default:
		return k.Checkpoint.String()
	}
}

// Tasks and slots.
type (
	// Send sends a message to a TaskManager. If it cannot be sent, the session's end
	// will be reported anyway; only a trigger and an operator event are answered.
	Send struct {
		To      execgraph.Location
		Message rpc.Message
	}
	// Forget acknowledges a final state to whoever reported it.
	Forget struct{ Attempt weir.AttemptID }
	// RequestSlots asks for slots, one for each want; zero ids mean anywhere. It
	// replaces a request that was not granted. Answers: SlotsGranted, before it any
	// number of SlotsShort.
	RequestSlots struct {
		Request uint64
		Wants   []weir.TaskManagerID
	}
	// ReturnSlots gives back slots that came too late.
	ReturnSlots struct{ Slots []Slot }
	// ReleaseSlots gives back all slots of the job and ends its request.
	ReleaseSlots struct{}
	// ArmTimer asks for TimerFired at a time.
	ArmTimer struct {
		Key TimerKey
		At  time.Time
	}
	// CancelTimer takes an ArmTimer back. It may come late.
	CancelTimer struct{ Key TimerKey }
)

// Storage and coordinators.
type (
	// Store is an action of the checkpoint coordinator for storage: TakeID,
	// WriteMetadata, AddLink, DiscardState or DeleteCheckpoint, answered as it says.
	Store struct{ Action checkpointing.Action }
	// RecordStop records a stop, or that it is over: Failure says why, and the savepoint
	// is named if there is one. Answer: StopRecorded.
	RecordStop struct {
		Stop       Stop
		Failure    string
		Checkpoint weir.CheckpointID
		Metadata   string // blob name
	}
	// LoadSnapshot reads a snapshot. Answer: SnapshotLoaded or SnapshotUnreadable.
	LoadSnapshot struct {
		Run      uint64
		Metadata string // blob name
		Why      string // that one, for people
	}
	// StartCoordinator makes an operator's coordinator, in place of one from before.
	// Answer: CoordinatorStarted or CoordinatorBroke.
	StartCoordinator struct {
		Run         uint64
		Operator    weir.OperatorID
		Name        string
		Parallelism int
		Restored    bool // State is that of a snapshot; else it assigns splits
		State       []byte
	}
	// StopCoordinator ends an operator's coordinator, if there is one.
	StopCoordinator struct{ Operator weir.OperatorID }
	// SnapshotCoordinator asks a coordinator for its state. Answer: Coordination with
	// opcoord.SnapshotTaken or SnapshotRefused.
	SnapshotCoordinator struct {
		Operator   weir.OperatorID
		Checkpoint weir.CheckpointID
	}
	// DeliverEvent hands a subtask's event to the coordinator.
	DeliverEvent struct {
		Operator weir.OperatorID
		Subtask  int32
		Event    []byte
	}
	// AnswerCoordinator answers opcoord.EventGiven. Error is empty if it was taken.
	AnswerCoordinator struct {
		Operator weir.OperatorID
		Token    opcoord.Token
		Error    string
	}
	// RestoreHooks makes the master hooks, in place of those from before, and restores
	// them. Answer: HookRestored or HookBroke, for each.
	RestoreHooks struct {
		Run        uint64
		Checkpoint weir.CheckpointID   // 0: the job starts from nothing
		Hooks      []snapshotmeta.Hook // all, with their states
	}
	// CallHooks asks all master hooks for their state. Answers: Checkpointing with
	// HookCompleted or HookFailed.
	CallHooks struct{ Checkpoint weir.CheckpointID }
	// NotifyCoordinators tells all coordinators and hooks of a completed checkpoint.
	NotifyCoordinators struct{ Checkpoint weir.CheckpointID }
)

// What the job has come to.
type (
	// SetStatus records the job's status.
	SetStatus struct {
		Status   rpc.JobStatus
		Detail   string
		Restarts int
		Failure  *weir.Failure
	}
	// JobEnded is the last action but for answers to what is under way.
	JobEnded struct{ Status rpc.JobStatus }
	// SnapshotEnded answers SnapshotRequested.
	SnapshotEnded struct {
		Request    string
		Checkpoint weir.CheckpointID
		Metadata   string // blob name
		Bytes      int64
		Reason     weir.FailureReason // ReasonNone: it is complete
		Message    string
	}
	// StopEnded answers StopRequested. A stop that was Refused was never begun. Without
	// a Failure the job has ended; with one, and with Metadata, there is a savepoint all
	// the same, and the job goes on from it.
	StopEnded struct {
		Request    string
		Refused    bool
		Failure    string
		Checkpoint weir.CheckpointID
		Metadata   string // blob name
	}
	// CheckpointEnded is for logs and metrics.
	CheckpointEnded struct {
		Statistics checkpointing.CheckpointStatistics
	}
	// Alarm says that checkpoints fail.
	Alarm struct{ Alarm checkpointing.Alarm }
	// TaskFailed is for the log: an attempt failed.
	TaskFailed struct {
		Attempt weir.AttemptID
		Failure *weir.Failure
	}
	// Restarting is for logs and metrics: the job restarts after a failure.
	Restarting struct {
		Failure *weir.Failure
		After   time.Duration
	}
	// StopActing says that another leader acts for the job. Core does nothing any more.
	StopActing struct{ Message string }
	// Note says what was ignored, and why.
	Note struct{ Text string }
)

func (Send) action()                {}
func (Forget) action()              {}
func (RequestSlots) action()        {}
func (ReturnSlots) action()         {}
func (ReleaseSlots) action()        {}
func (ArmTimer) action()            {}
func (CancelTimer) action()         {}
func (Store) action()               {}
func (RecordStop) action()          {}
func (SnapshotEnded) action()       {}
func (StopEnded) action()           {}
func (LoadSnapshot) action()        {}
func (StartCoordinator) action()    {}
func (StopCoordinator) action()     {}
func (SnapshotCoordinator) action() {}
func (DeliverEvent) action()        {}
func (AnswerCoordinator) action()   {}
func (NotifyCoordinators) action()  {}
func (RestoreHooks) action()        {}
func (CallHooks) action()           {}
func (SetStatus) action()           {}
func (JobEnded) action()            {}
func (CheckpointEnded) action()     {}
func (Alarm) action()               {}
func (TaskFailed) action()          {}
func (Restarting) action()          {}
func (StopActing) action()          {}
func (Note) action()                {}
