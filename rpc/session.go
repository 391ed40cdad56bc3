package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/weirflow/weir"
)

// Errors of a session.
var (
	// ErrSessionClosed is returned by Send after the session ended.
	ErrSessionClosed = errors.New("session closed")
	// ErrNotLeader is wrapped by Dial and by client calls when the JobManager asked
	// does not lead; see NotLeaderError for the leader's address.
	ErrNotLeader = errors.New("not the leader")
)

// NotLeaderError says who leads, if that is known.
type NotLeaderError struct{ Leader string }

func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return "not the leader; no leader is known"
	}
	return "not the leader; the leader is " + e.Leader
}

// Is makes errors.Is(err, ErrNotLeader) hold.
func (e *NotLeaderError) Is(target error) bool { return target == ErrNotLeader }

// Message is anything sent over a session.
//
//sumtype:decl
type Message interface{ message() }

// Session is one conversation between a TaskManager and the JobManager. Both
// ends hold one.
type Session interface {
	// Send queues a message. It never waits; a full queue ends the session.
	Send(m Message) error
	// Close ends the session for both sides. It is idempotent.
	Close(cause error)
	// Peer names the other side for logs.
	Peer() string
}

// SessionHandler is what one side does with what it hears. Calls come from one
// goroutine per session and must not block: they post to a loop.
type SessionHandler interface {
	// Receive takes the next message.
	Receive(s Session, m Message)
	// Closed is the last call: the session ended, for this cause.
	Closed(s Session, cause error)
}

// Acceptor decides at the JobManager who hears a session that a TaskManager opens.
type Acceptor interface {
	// Accept returns the session's handler, or an error that ends the session, for
	// example a NotLeaderError. It must not wait.
	Accept(ctx context.Context) (SessionHandler, error)
}

// Dialer opens sessions from a TaskManager.
type Dialer interface {
	Dial(ctx context.Context, h SessionHandler) (Session, error)
}

// Registration is who a TaskManager is.
type Registration struct {
	ID             weir.TaskManagerID
	Incarnation    weir.Incarnation
	DataAddress    string // where peers dial for data
	Host           string // for people
	CodeID         string
	Slots          int
	Memory         int64 // network buffer memory in bytes
	MetricsAddress string
}

// Messages from a TaskManager to the JobManager.
type (
	// Register opens the conversation. Attempts that still run are cancelled by a
	// new leader, so they are listed.
	Register struct {
		Registration
		Running []weir.AttemptID
	}
	// Heartbeat says that the TaskManager lives.
	Heartbeat struct {
		Epoch weir.LeaderEpoch // as learned from Registered
		Tasks []TaskStats
	}
	// TaskStateChanged reports a new state of an attempt. Final states are repeated
	// after a reconnect until acknowledged by Forget.
	TaskStateChanged struct {
		Attempt weir.AttemptID
		State   TaskState
		Failure *weir.Failure // for failed attempts
	}
	// AcknowledgeCheckpoint brings an attempt's part of a snapshot.
	AcknowledgeCheckpoint struct {
		Attempt    weir.AttemptID
		Checkpoint weir.CheckpointID
		State      weir.TaskStateSnapshot
		Metrics    weir.CheckpointMetrics
	}
	// DeclineCheckpoint says why there is none.
	DeclineCheckpoint struct {
		Attempt    weir.AttemptID
		Checkpoint weir.CheckpointID
		Reason     weir.FailureReason
		Message    string
	}
	// EndOfData says that an attempt has reached the end of its data and waits for a
	// last checkpoint (behaviour §13).
	EndOfData struct{ Attempt weir.AttemptID }
	// BarrierSent tells the source's coordinator that the subtask's barrier is in
	// its output (behaviour §24: its event gate opens).
	BarrierSent struct {
		Attempt    weir.AttemptID
		Operator   weir.OperatorID
		Checkpoint weir.CheckpointID
	}
	// OperatorEvent is an event between a coordinator and a subtask's operator, in
	// either direction.
	OperatorEvent struct {
		Attempt  weir.AttemptID
		Operator weir.OperatorID
		Seq      uint64 // JobManager to TaskManager: confirmed by OperatorEventAck
		Event    []byte
	}
	// OperatorEventAck confirms that an event reached the operator, or says why not.
	OperatorEventAck struct {
		Attempt weir.AttemptID
		Seq     uint64
		Error   string
	}
)

// Messages from the JobManager to a TaskManager.
type (
	// Registered accepts a registration.
	Registered struct {
		Epoch             weir.LeaderEpoch
		HeartbeatInterval time.Duration
		HeartbeatTimeout  time.Duration
	}
	// Refused rejects one, for example another incarnation of the same id is alive.
	Refused struct{ Reason string }
	// Deploy starts an attempt.
	Deploy struct{ Deployment TaskDeployment }
	// Cancel ends an attempt.
	Cancel struct{ Attempt weir.AttemptID }
	// TriggerCheckpoint makes a source (or a task without running inputs) start a snapshot.
	TriggerCheckpoint struct {
		Attempt weir.AttemptID
		Barrier weir.Barrier
	}
	// NotifyCheckpointComplete tells an attempt that a checkpoint is complete.
	NotifyCheckpointComplete struct {
		Attempt    weir.AttemptID
		Checkpoint weir.CheckpointID
		Subsumed   weir.CheckpointID // or NoCheckpoint
	}
	// NotifyCheckpointAborted tells an attempt that a checkpoint was aborted.
	NotifyCheckpointAborted struct {
		Attempt         weir.AttemptID
		Checkpoint      weir.CheckpointID
		LatestCompleted weir.CheckpointID // or NoCheckpoint
	}
	// Forget acknowledges an attempt's final state; the TaskManager may drop it.
	Forget struct{ Attempt weir.AttemptID }
	// HeartbeatAck answers a heartbeat.
	HeartbeatAck struct{}
)

func (Register) message()                 {}
func (Heartbeat) message()                {}
func (TaskStateChanged) message()         {}
func (AcknowledgeCheckpoint) message()    {}
func (DeclineCheckpoint) message()        {}
func (EndOfData) message()                {}
func (BarrierSent) message()              {}
func (OperatorEvent) message()            {}
func (OperatorEventAck) message()         {}
func (Registered) message()               {}
func (Refused) message()                  {}
func (Deploy) message()                   {}
func (Cancel) message()                   {}
func (TriggerCheckpoint) message()        {}
func (NotifyCheckpointComplete) message() {}
func (NotifyCheckpointAborted) message()  {}
func (Forget) message()                   {}
func (HeartbeatAck) message()             {}

// TaskState is the state of an execution attempt.
type TaskState uint8

// Task states. The last three are final.
const (
	TaskCreated TaskState = iota
	TaskScheduled
	TaskDeploying
	TaskInitializing
	TaskRunning
	TaskCanceling
	TaskFinished
	TaskCanceled
	TaskFailed
)

var taskStateNames = [...]string{"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "CANCELING", "FINISHED", "CANCELED", "FAILED"}

func (s TaskState) String() string {
	if int(s) < len(taskStateNames) {
		return taskStateNames[s]
	}
	return "UNKNOWN"
}

// Final says whether the attempt has ended.
func (s TaskState) Final() bool { return s >= TaskFinished }

// TaskStats are an attempt's live figures, sent with heartbeats.
type TaskStats struct {
	Attempt        weir.AttemptID
	RecordsIn      int64
	RecordsOut     int64
	BytesIn        int64
	BytesOut       int64
	BusyRatio      float64 // shares of the last second, 0 to 1
	BackPressured  float64
	IdleRatio      float64
	BytesQueuedOut int64 // in its output partitions
	BytesQueuedIn  int64 // in its input gates
	BuffersInUse   int64
	// Of BackPressured: soft is the time in which an output had no buffer between two
	// records, hard that in which it had none within one.
	SoftBackPressured float64
	HardBackPressured float64
	OutPoolUsage      float64 // shares of the buffers in use, 0 to 1
	InPoolUsage       float64
}
