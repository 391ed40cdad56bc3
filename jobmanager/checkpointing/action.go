package checkpointing

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// Action is what [CheckpointCoordinator.Step] wants done. Slices in actions are
// shared with the coordinator: they are read, never written.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	action()
}

// TriggerID numbers attempts to trigger a checkpoint; they exist before its id does.
type TriggerID uint64

// CleanupID numbers deletions; 0 is none.
type CleanupID uint64

// RequestID names a request made by hand; 0 stands for the periodic ones.
type RequestID uint64

// TimerKind says what a timer is for.
type TimerKind uint8

// Timers.
const (
	PeriodicTimer TimerKind = iota // the next periodic request is due
	ExpiryTimer                    // a pending checkpoint expires
)

// TimerKey names a timer. Keys are never reused, so a late timer is recognized.
type TimerKey struct {
	Kind       TimerKind
	Checkpoint weir.CheckpointID // of ExpiryTimer
	N          uint64            // of PeriodicTimer: grows with each arming
}

func (k TimerKey) String() string {
	if k.Kind == ExpiryTimer {
		return fmt.Sprintf("expiry/%d", k.Checkpoint)
	}
	return fmt.Sprintf("periodic/%d", k.N)
}

// CommitPermit proves that a checkpoint is a link of its job's chain. Only
// checkpointing/store makes one.
type CommitPermit interface{ ID() weir.CheckpointID }

// TaskState is what one attempt acknowledged.
type TaskState struct {
	Attempt weir.AttemptID
	State   weir.TaskStateSnapshot
}

// CoordinatorState is the snapshot of one operator coordinator.
type CoordinatorState struct {
	Operator weir.OperatorID
	State    []byte
}

// HookState is what one master hook gave for a snapshot.
type HookState struct {
	Hook  string
	State []byte
}

// Actions for the core, which answers in the same call.
type (
	// NeedPlan asks for CalculatePlan over the execution graph as it is now. Answer:
	// PlanCalculated.
	NeedPlan struct{ Trigger TriggerID }
	// SnapshotCoordinators asks each operator coordinator for its snapshot, event gates
	// first. Answers: CoordinatorSnapshotted or CoordinatorFailed for each; none
	// once the checkpoint was aborted.
	SnapshotCoordinators struct {
		Checkpoint weir.CheckpointID
		Operators  []weir.OperatorID
	}
)

// Actions for the shell.
type (
	// ArmTimer asks for TimerFired at a time.
	ArmTimer struct {
		Key TimerKey
		At  time.Time
	}
	// CancelTimer takes an ArmTimer back. It may come late.
	CancelTimer struct{ Key TimerKey }
	// TakeID asks for the job's next checkpoint id. Answer: IDTaken, IDFailed or
	// OvertakenByOther.
	TakeID struct{ Trigger TriggerID }
	// InitializeLocation makes the directory of a savepoint, in which nothing may be
	// yet, and finds out whether it can be written. Answer: LocationInitialized or
	// LocationFailed, also if the savepoint was aborted meanwhile: then what was made
	// is discarded. A checkpoint's location needs no preparation.
	InitializeLocation struct {
		Checkpoint weir.CheckpointID
		Kind       weir.SnapshotKind
		Location   string
	}
	// CallHooks asks the master hooks for their state, all at once. Answers:
	// HookCompleted or HookFailed for each; none once the checkpoint was aborted.
	CallHooks struct {
		Checkpoint weir.CheckpointID
		Hooks      []string
	}
	// TriggerTasks sends the barrier to each attempt of the trigger list. Answer:
	// TriggerFailed where it could not be sent.
	TriggerTasks struct {
		Attempts []weir.AttemptID
		Barrier  weir.Barrier // its Age is that of now; who sends it later adds to it
	}
	// WriteMetadata writes the _metadata file. Answer: MetadataWritten, MetadataFailed or
	// OvertakenByOther; a doubtful end is asked about until it is one of these.
	WriteMetadata struct {
		Checkpoint    weir.CheckpointID
		Kind          weir.SnapshotKind
		Location      string // "chk-7", or that of the request for a savepoint
		Triggered     time.Time
		Completed     time.Time   // when the last acknowledgement came
		Tasks         []TaskState // by vertex and subtask
		Finished      []weir.AttemptID
		FullyFinished []int32 // vertices
		Coordinators  []CoordinatorState
		Hooks         []HookState
	}
	// AddLink adds the next link to the job's chain: of a checkpoint, or of the
	// savepoint of a stop. Other savepoints have none: they are complete when their
	// metadata is written. Answer: LinkAdded, LinkFailed or
	// OvertakenByOther; a doubtful end is asked about until it is one of these.
	AddLink struct {
		Checkpoint weir.CheckpointID
		Kind       weir.SnapshotKind
		Metadata   string // blob name
		Bytes      int64
		At         time.Time
	}
	// NotifyComplete tells the tasks of the commit list, and all operator coordinators
	// and event gates, that a checkpoint is complete. Who does not run any more is
	// left out.
	NotifyComplete struct {
		Permit   CommitPermit
		Tasks    []weir.AttemptID
		Subsumed weir.CheckpointID // or NoCheckpoint
	}
	// NotifyAborted tells the same that it was aborted. It follows every abort of a
	// checkpoint with an id, once.
	NotifyAborted struct {
		Checkpoint      weir.CheckpointID
		Tasks           []weir.AttemptID
		LatestCompleted weir.CheckpointID // or NoCheckpoint
	}
	// DiscardState deletes the files of state that belongs to no checkpoint. Answer:
	// CleanupEnded. Of an aborted savepoint (Kind) the directory goes too, if nothing
	// else is in it.
	DiscardState struct {
		Cleanup    CleanupID
		Checkpoint weir.CheckpointID
		Kind       weir.SnapshotKind
		Location   string // as in WriteMetadata; empty if nothing is known of the checkpoint
		States     []TaskState
	}
	// DeleteCheckpoint removes a snapshot: first its link, if it has one, then all its
	// files with the _metadata. A savepoint is only deleted if it was aborted while its
	// metadata was written. Foreign: it is another job's that this one took over.
	// KeepFiles: only the link goes, since it is the savepoint of a stop. Answer:
	// CleanupEnded.
	DeleteCheckpoint struct {
		Cleanup    CleanupID
		Checkpoint weir.CheckpointID
		Kind       weir.SnapshotKind
		Metadata   string
		Linked     bool
		Foreign    bool
		KeepFiles  bool
	}
	// DeleteShared deletes files of the job's shared directory that no snapshot uses any
	// more. Answer: CleanupEnded.
	DeleteShared struct {
		Cleanup CleanupID
		Files   []string // sorted
	}
	// CheckpointEnded is for logs and metrics: one for each checkpoint, and one
	// without id for each trigger that failed before it had one.
	CheckpointEnded struct{ Statistics CheckpointStatistics }
	// Alarm says that checkpoints fail: the reason counts (behaviour §9), and Failures
	// such failures came since the last success.
	Alarm struct {
		Failures   int
		Checkpoint weir.CheckpointID // or NoCheckpoint
		Reason     weir.FailureReason
		Message    string
	}
	// FailJob says that too many checkpoints failed, or that a task declined the
	// savepoint of a stop: the region of Attempt is to be failed, if that attempt is
	// still current, or all of the job if Attempt is zero. It is the last action of its
	// step.
	FailJob struct {
		Attempt    weir.AttemptID
		Checkpoint weir.CheckpointID // the last that failed, or NoCheckpoint
		Reason     weir.FailureReason
		Message    string
	}
	// LinkSettled says that Linking, which was true, is not any more: a restore that
	// waited may go on.
	LinkSettled struct{}
	// RequestEnded answers Requested.
	RequestEnded struct {
		Request    RequestID
		Checkpoint weir.CheckpointID  // or NoCheckpoint
		Reason     weir.FailureReason // ReasonNone: it completed
		Message    string
		Metadata   string // blob name, if it completed
		Bytes      int64  // of the whole snapshot, if it completed
	}
	// StopActing says that another leader acts for the job: the core must do nothing
	// for it any more.
	StopActing struct{ Message string }
	// Note says what was ignored, and why.
	Note struct{ Text string }
)

func (NeedPlan) action()             {}
func (SnapshotCoordinators) action() {}
func (ArmTimer) action()             {}
func (CancelTimer) action()          {}
func (TakeID) action()               {}
func (TriggerTasks) action()         {}
func (WriteMetadata) action()        {}
func (AddLink) action()              {}
func (NotifyComplete) action()       {}
func (NotifyAborted) action()        {}
func (DiscardState) action()         {}
func (DeleteCheckpoint) action()     {}
func (CheckpointEnded) action()      {}
func (Alarm) action()                {}
func (LinkSettled) action()          {}
func (RequestEnded) action()         {}
func (StopActing) action()           {}
func (Note) action()                 {}
func (InitializeLocation) action()   {}
func (CallHooks) action()            {}
func (DeleteShared) action()         {}
func (FailJob) action()              {}
