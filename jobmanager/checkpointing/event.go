package checkpointing

import (
	"fmt"
	"time"

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
	// StateRestored says that tasks are about to start from a snapshot. It is for
	// statistics.
	StateRestored struct{ From RestoredSnapshot }
	// TasksRunning says that all tasks of the job run: the periodic scheduler starts.
	// It stops what was pending before.
	TasksRunning struct{}
	// TasksStopped stops the periodic scheduler, for another reason than a failover:
	// the job is cancelled or suspended, or a stop-with-savepoint begins, which takes
	// its savepoint with Requested next and, if that fails, lets the scheduler go on
	// with TasksRunning. What is pending or waits is aborted, savepoints included.
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
	// Requested asks for a snapshot by hand. It is answered by RequestEnded, once.
	// Checkpoint is as configured, FullCheckpoint shares no file with an earlier one.
	Requested struct {
		Request RequestID // chosen by the caller, not 0, not in use
		Kind    weir.SnapshotKind
		// Location is where the files of a savepoint go, which must not be in use; it
		// is required for savepoints. Checkpoints have a place of their own.
		Location string
	}
	// EndOfData says that every task of the job has reached the end of its data and
	// waits for a last checkpoint: one is requested at once (behaviour §13). If that
	// fails the event is to be repeated.
	EndOfData struct{}
	// IntervalChanged sets the periodic interval of a running job, and the one during
	// backlog with it if that was not set. It was checked with
	// [Options.WithInterval]; 0 means no periodic checkpoints.
	IntervalChanged struct{ Interval time.Duration }
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
	// LocationInitialized answers InitializeLocation.
	LocationInitialized struct{ Checkpoint weir.CheckpointID }
	// LocationFailed answers InitializeLocation: nothing can be written there. Reason
	// is IOException, or TriggerCheckpointFailure for what is no I/O error.
	LocationFailed struct {
		Checkpoint weir.CheckpointID
		Reason     weir.FailureReason
		Message    string
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
	// HookCompleted answers CallHooks for one master hook.
	HookCompleted struct {
		Checkpoint weir.CheckpointID
		Hook       string
		State      []byte // may be empty
	}
	// HookFailed answers CallHooks for one master hook: it has no state.
	HookFailed struct {
		Checkpoint weir.CheckpointID
		Hook       string
		Message    string
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
func (StateRestored) event()          {}
func (EndOfData) event()              {}
func (IntervalChanged) event()        {}
func (LocationInitialized) event()    {}
func (LocationFailed) event()         {}
func (HookFailed) event()             {}
