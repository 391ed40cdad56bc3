package weir

import "fmt"

// FailureReason says why a checkpoint was not taken or not completed (behaviour §9).
type FailureReason uint8

// Reasons.
const (
	ReasonNone FailureReason = iota
	PeriodicSchedulerShutdown
	TooManyCheckpointRequests
	MinimumTimeBetweenCheckpoints
	NotAllRequiredTasksRunning
	BlockingOutputExist
	IOException
	CheckpointAsyncException
	CheckpointDeclined
	CheckpointExpired
	FinalizeCheckpointFailure
	ChannelStateSharedStreamException
	CheckpointSubsumed
	CheckpointDeclinedTaskNotReady
	CheckpointDeclinedTaskClosing
	CheckpointDeclinedSubsumed
	CheckpointDeclinedOnCancellationBarrier
	CheckpointDeclinedInputEndOfStream
	CheckpointCoordinatorShutdown
	CheckpointCoordinatorSuspend
	JobFailoverRegion
	TaskFailure
	TaskCheckpointFailure
	UnknownTaskCheckpointNotificationFailure
	TriggerCheckpointFailure
)

var reasonNames = [...]string{
	"NONE", "PERIODIC_SCHEDULER_SHUTDOWN", "TOO_MANY_CHECKPOINT_REQUESTS", "MINIMUM_TIME_BETWEEN_CHECKPOINTS",
	"NOT_ALL_REQUIRED_TASKS_RUNNING", "BLOCKING_OUTPUT_EXIST", "IO_EXCEPTION", "CHECKPOINT_ASYNC_EXCEPTION",
	"CHECKPOINT_DECLINED", "CHECKPOINT_EXPIRED", "FINALIZE_CHECKPOINT_FAILURE", "CHANNEL_STATE_SHARED_STREAM_EXCEPTION",
	"CHECKPOINT_SUBSUMED", "CHECKPOINT_DECLINED_TASK_NOT_READY", "CHECKPOINT_DECLINED_TASK_CLOSING",
	"CHECKPOINT_DECLINED_SUBSUMED", "CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER",
	"CHECKPOINT_DECLINED_INPUT_END_OF_STREAM", "CHECKPOINT_COORDINATOR_SHUTDOWN", "CHECKPOINT_COORDINATOR_SUSPEND",
	"JOB_FAILOVER_REGION", "TASK_FAILURE", "TASK_CHECKPOINT_FAILURE", "UNKNOWN_TASK_CHECKPOINT_NOTIFICATION_FAILURE",
	"TRIGGER_CHECKPOINT_FAILURE",
}

// String is the reason's name as operators of such systems know it.
func (r FailureReason) String() string { return name(reasonNames[:], int(r), "FailureReason") }

// ParseFailureReason reads what [FailureReason.String] writes.
func ParseFailureReason(s string) (FailureReason, bool) {
	for i, n := range reasonNames {
		if n == s {
			return FailureReason(i), true
		}
	}
	return ReasonNone, false
}

// Fault says whose fault a failure is.
type Fault uint8

// Faults.
const (
	FaultSystem  Fault = iota // ours, or of the machine we run on
	FaultUser                 // the job's code or graph
	FaultOutside              // something we talk to: storage, a source, a peer
)

var faultNames = [...]string{"system", "user", "outside"}

func (f Fault) String() string { return name(faultNames[:], int(f), "Fault") }

// Failure is what ended an attempt or a job, for programs and for people. It is
// an error.
type Failure struct {
	Message  string
	Fault    Fault
	NoRetry  bool   // restarting cannot help, for example a graph mismatch
	Operator string // the operator's name, if one is to blame
	Subtask  int32  // of the operator; negative: none, for example its enumerator
	Stack    string // of a panic in user code, or of where an error of it was received
	// Cause names the attempt that this failure is only a consequence of, if
	// known: a lost partition is the fault of its producer.
	Cause AttemptID
}

func (f *Failure) Error() string {
	if f.Operator == "" {
		return f.Message
	}
	if f.Subtask < 0 {
		return fmt.Sprintf("operator %q: %s", f.Operator, f.Message)
	}
	return fmt.Sprintf("operator %q, subtask %d: %s", f.Operator, f.Subtask, f.Message)
}
