package checkpointing

import (
	"fmt"

	"github.com/weirflow/weir"
)

// Event is something that happened, as told to [CheckpointCoordinator.Step].
//
//sumtype:decl
type Event interface {
	fmt.Stringer
	event()
}

// What the job does.
type (
	// Restored is the first event: what the chain holds (or the snapshot that the job
	// was started from), oldest first. It is repeated only if the chain was read anew.
	Restored struct{ Completed []CompletedCheckpoint }
	// TasksRunning says that all tasks of the job run: the periodic scheduler starts.
	// It stops what was pending before.
	TasksRunning struct{}
	// TasksStopped says that the job is not running any more, for another reason than
	// a failover (cancel, suspend): pending checkpoints are aborted.
	TasksStopped struct{}
	// JobFailover says that tasks are about to be cancelled and restored. The
	// scheduler stops; TasksRunning starts it again.
	JobFailover struct{}
	// Shutdown is the last event of a job.
	Shutdown struct{}
	// AttemptFailed says that an attempt failed or was lost with its TaskManager.
	AttemptFailed struct{ Attempt weir.AttemptID }
	// AttemptFinished says that an attempt ended normally. Its acknowledgements, if
	// any, came before.
	AttemptFinished struct{ Attempt weir.AttemptID }
	// TimerFired answers an ArmTimer.
	TimerFired struct{ Key TimerKey }
	// Requested asks for a checkpoint by hand. It is answered by RequestEnded.
	Requested struct {
		Request RequestID // chosen by the caller, not 0
		Kind    weir.SnapshotKind
	}
	// BacklogChanged says that a source's operator works off a backlog, or not any more.
	BacklogChanged struct {
		Operator weir.OperatorID
		Backlog  bool
	}
)

// Answers to actions.
type (
	// PlanCalculated answers NeedPlan, in the same call of the core. Plan is nil if
	// there is none; then Reason and Message say why.
	PlanCalculated struct {
		Trigger TriggerID
		Plan    *CheckpointPlan
		Reason  weir.FailureReason
		Message string
	}
	// IDTaken answers TakeID.
	IDTaken struct {
		Trigger    TriggerID
		Checkpoint weir.CheckpointID
	}
	// IDFailed answers TakeID: there is no id. Reason is IOException, or
	// TriggerCheckpointFailure for what is no I/O error.
	IDFailed struct {
		Trigger TriggerID
		Reason  weir.FailureReason
		Message string
	}
	// CoordinatorSnapshotted answers SnapshotCoordinators for one operator.
	CoordinatorSnapshotted struct {
		Checkpoint weir.CheckpointID
		Operator   weir.OperatorID
		State      []byte
	}
	// CoordinatorFailed answers SnapshotCoordinators for one operator: it has none.
	CoordinatorFailed struct {
		Checkpoint weir.CheckpointID
		Operator   weir.OperatorID
		Message    string
	}
	// TriggerFailed says that an attempt could not be sent its trigger. Success is not
	// reported.
	TriggerFailed struct {
		Checkpoint weir.CheckpointID
		Attempt    weir.AttemptID
		Message    string
	}
	// Acknowledged brings an attempt's part.
	Acknowledged struct {
		Attempt    weir.AttemptID
		Checkpoint weir.CheckpointID
		State      weir.TaskStateSnapshot
		Metrics    weir.CheckpointMetrics
	}
	// Declined says that an attempt has none.
	Declined struct {
		Attempt    weir.AttemptID
		Checkpoint weir.CheckpointID
		Reason     weir.FailureReason
		Message    string
	}
	// MetadataWritten answers WriteMetadata: the file exists and was read back.
	MetadataWritten struct {
		Checkpoint weir.CheckpointID
		Metadata   string // blob name
		Bytes      int64  // of the whole snapshot
	}
	// MetadataFailed answers WriteMetadata: the file does not exist and never will.
	MetadataFailed struct {
		Checkpoint weir.CheckpointID
		Message    string
	}
	// LinkAdded answers AddLink: the checkpoint is complete.
	LinkAdded struct {
		Checkpoint weir.CheckpointID
		Permit     CommitPermit
	}
	// LinkFailed answers AddLink: it is known that there is no such link and that
	// there never will be, though we still lead.
	LinkFailed struct {
		Checkpoint weir.CheckpointID
		Message    string
	}
	// OvertakenByOther says, in answer to AddLink, TakeID or any other write, that
	// another leader acts for the job. The coordinator stops acting for good.
	OvertakenByOther struct{ Message string }
	// CleanupEnded answers DiscardState and DeleteCheckpoint, however they ended.
	CleanupEnded struct{ Cleanup CleanupID }
	// HookCompleted is reserved for master hooks; it is answered by a Note.
	HookCompleted struct {
		Checkpoint weir.CheckpointID
		Hook       string
	}
)

func (Restored) event()               {}
func (TasksRunning) event()           {}
func (TasksStopped) event()           {}
func (JobFailover) event()            {}
func (Shutdown) event()               {}
func (AttemptFailed) event()          {}
func (AttemptFinished) event()        {}
func (TimerFired) event()             {}
func (Requested) event()              {}
func (BacklogChanged) event()         {}
func (PlanCalculated) event()         {}
func (IDTaken) event()                {}
func (IDFailed) event()               {}
func (CoordinatorSnapshotted) event() {}
func (CoordinatorFailed) event()      {}
func (TriggerFailed) event()          {}
func (Acknowledged) event()           {}
func (Declined) event()               {}
func (MetadataWritten) event()        {}
func (MetadataFailed) event()         {}
func (LinkAdded) event()              {}
func (LinkFailed) event()             {}
func (OvertakenByOther) event()       {}
func (CleanupEnded) event()           {}
func (HookCompleted) event()          {}

func (e Restored) String() string {
	return fmt.Sprintf("restored %d completed", len(e.Completed))
}
func (TasksRunning) String() string      { return "tasks running" }
func (TasksStopped) String() string      { return "tasks stopped" }
func (JobFailover) String() string       { return "job failover" }
func (Shutdown) String() string          { return "shutdown" }
func (e AttemptFailed) String() string   { return fmt.Sprintf("attempt %s failed", e.Attempt) }
func (e AttemptFinished) String() string { return fmt.Sprintf("attempt %s finished", e.Attempt) }
func (e TimerFired) String() string      { return fmt.Sprintf("timer %s fired", e.Key) }
func (e Requested) String() string       { return fmt.Sprintf("request %d for a %s", e.Request, e.Kind) }
func (e BacklogChanged) String() string {
	return fmt.Sprintf("backlog of %.8s: %t", e.Operator, e.Backlog)
}

func (e PlanCalculated) String() string {
	if e.Plan == nil {
		return fmt.Sprintf("no plan for trigger %d: %s: %s", e.Trigger, e.Reason, e.Message)
	}
	return fmt.Sprintf("plan for trigger %d: %d to trigger, %d to wait for", e.Trigger, len(e.Plan.Trigger), len(e.Plan.Wait))
}
func (e IDTaken) String() string { return fmt.Sprintf("id %d for trigger %d", e.Checkpoint, e.Trigger) }
func (e IDFailed) String() string {
	return fmt.Sprintf("no id for trigger %d: %s: %s", e.Trigger, e.Reason, e.Message)
}
func (e CoordinatorSnapshotted) String() string {
	return fmt.Sprintf("coordinator %.8s snapshotted %d: %d bytes", e.Operator, e.Checkpoint, len(e.State))
}
func (e CoordinatorFailed) String() string {
	return fmt.Sprintf("coordinator %.8s failed %d: %s", e.Operator, e.Checkpoint, e.Message)
}
func (e TriggerFailed) String() string {
	return fmt.Sprintf("trigger of %d at %s failed: %s", e.Checkpoint, e.Attempt, e.Message)
}
func (e Acknowledged) String() string {
	return fmt.Sprintf("%s acknowledged %d", e.Attempt, e.Checkpoint)
}
func (e Declined) String() string {
	return fmt.Sprintf("%s declined %d: %s: %s", e.Attempt, e.Checkpoint, e.Reason, e.Message)
}
func (e MetadataWritten) String() string {
	return fmt.Sprintf("metadata of %d written: %s, %d bytes", e.Checkpoint, e.Metadata, e.Bytes)
}
func (e MetadataFailed) String() string {
	return fmt.Sprintf("metadata of %d failed: %s", e.Checkpoint, e.Message)
}
func (e LinkAdded) String() string { return fmt.Sprintf("link of %d added", e.Checkpoint) }
func (e LinkFailed) String() string {
	return fmt.Sprintf("link of %d failed: %s", e.Checkpoint, e.Message)
}
func (e OvertakenByOther) String() string { return "overtaken by another leader: " + e.Message }
func (e CleanupEnded) String() string     { return fmt.Sprintf("cleanup %d ended", e.Cleanup) }
func (e HookCompleted) String() string {
	return fmt.Sprintf("hook %q completed for %d", e.Hook, e.Checkpoint)
}
