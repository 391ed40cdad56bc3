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
		Triggered     time.Time
		Completed     time.Time   // when the last acknowledgement came
		Tasks         []TaskState // by vertex and subtask
		Finished      []weir.AttemptID
		FullyFinished []int32 // vertices
		Coordinators  []CoordinatorState
	}
	// AddLink adds the next link to the job's chain. Answer: LinkAdded, LinkFailed or
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
	// CleanupEnded.
	DiscardState struct {
		Cleanup    CleanupID
		Checkpoint weir.CheckpointID
		States     []TaskState
	}
	// DeleteCheckpoint removes a checkpoint: first its link, if it has one, then all its
	// files with the _metadata. Answer: CleanupEnded.
	DeleteCheckpoint struct {
		Cleanup    CleanupID
		Checkpoint weir.CheckpointID
		Metadata   string
		Linked     bool
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
	// LinkSettled says that Linking, which was true, is not any more: a restore that
	// waited may go on.
	LinkSettled struct{}
	// RequestEnded answers Requested.
	RequestEnded struct {
		Request    RequestID
		Checkpoint weir.CheckpointID  // or NoCheckpoint
		Reason     weir.FailureReason // ReasonNone: it completed
		Message    string
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

func (a NeedPlan) String() string { return fmt.Sprintf("need plan for trigger %d", a.Trigger) }
func (a SnapshotCoordinators) String() string {
	return fmt.Sprintf("snapshot %d coordinators for %d", len(a.Operators), a.Checkpoint)
}
func (a ArmTimer) String() string {
	return fmt.Sprintf("arm timer %s at %s", a.Key, a.At.Format(time.RFC3339Nano))
}
func (a CancelTimer) String() string { return fmt.Sprintf("cancel timer %s", a.Key) }
func (a TakeID) String() string      { return fmt.Sprintf("take id for trigger %d", a.Trigger) }
func (a TriggerTasks) String() string {
	o := a.Barrier.Options
	alignment := o.Alignment.String()
	if o.Timeout > 0 {
		alignment += fmt.Sprintf(" for %s", o.Timeout)
	}
	return fmt.Sprintf("trigger %s %d (%s, %s) at %s", o.Kind, a.Barrier.ID, alignment, o.Location, attempts(a.Attempts))
}
func (a WriteMetadata) String() string {
	return fmt.Sprintf("write metadata of %d: %d tasks, %d finished, %d coordinators",
		a.Checkpoint, len(a.Tasks), len(a.Finished), len(a.Coordinators))
}
func (a AddLink) String() string { return fmt.Sprintf("add link %d: %s", a.Checkpoint, a.Metadata) }
func (a NotifyComplete) String() string {
	return fmt.Sprintf("notify complete %d, subsumed %d: %s", a.Permit.ID(), a.Subsumed, attempts(a.Tasks))
}
func (a NotifyAborted) String() string {
	return fmt.Sprintf("notify aborted %d, latest completed %d: %s", a.Checkpoint, a.LatestCompleted, attempts(a.Tasks))
}
func (a DiscardState) String() string {
	ids := make([]weir.AttemptID, len(a.States))
	for i := range a.States {
		ids[i] = a.States[i].Attempt
	}
	return fmt.Sprintf("discard state of %d (cleanup %d): %s", a.Checkpoint, a.Cleanup, attempts(ids))
}
func (a DeleteCheckpoint) String() string {
	what := "file"
	if a.Linked {
		what = "link and files"
	}
	return fmt.Sprintf("delete %s of %d (cleanup %d)", what, a.Checkpoint, a.Cleanup)
}
func (a CheckpointEnded) String() string { return "ended: " + a.Statistics.String() }
func (a Alarm) String() string {
	last := "without id"
	if a.Checkpoint != weir.NoCheckpoint {
		last = fmt.Sprintf("last %d", a.Checkpoint)
	}
	return fmt.Sprintf("alarm: %d failed checkpoints, %s: %s: %s", a.Failures, last, a.Reason, a.Message)
}
func (LinkSettled) String() string { return "link settled" }
func (a RequestEnded) String() string {
	if a.Reason == weir.ReasonNone {
		return fmt.Sprintf("request %d completed as %d", a.Request, a.Checkpoint)
	}
	return fmt.Sprintf("request %d failed: %s: %s", a.Request, a.Reason, a.Message)
}
func (a StopActing) String() string { return "stop acting: " + a.Message }
func (a Note) String() string       { return "note: " + a.Text }

// attempts lists at most eight attempts, without their job and epoch.
func attempts(ids []weir.AttemptID) string {
	const shown = 8
	s := ""
	for i, id := range ids {
		if i == shown {
			return fmt.Sprintf("%s and %d more", s, len(ids)-shown)
		}
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%s#%d", id.SubtaskID(), id.N)
	}
	if s == "" {
		return "nobody"
	}
	return s
}
