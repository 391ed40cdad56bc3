package chanstate

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir"
)

// Errors that fail the channel state of a checkpoint.
var (
	// ErrMemory: what was captured does not fit into the group's memory.
	ErrMemory = errors.New("captured in-flight data exceeds the memory for channel state")
	// ErrOverlap: a newer checkpoint began to capture before this one was done.
	ErrOverlap = errors.New("a newer checkpoint captures channel state")
	// ErrFinished: data came after the end of its side was declared.
	ErrFinished = errors.New("channel state written after its end")
	// ErrLate: the file that a subtask wants to share is complete.
	ErrLate = errors.New("channel-state file is complete without this subtask")
	// errSubsumed: a newer checkpoint was started or aborted.
	errSubsumed = errors.New("a newer checkpoint was started or aborted")
	// errShared: another subtask of the group failed.
	errShared = errors.New("the file shared with another subtask is lost")
	// ErrEnded: a subtask that was sharing the file has ended.
	ErrEnded = errors.New("a subtask ended while it captured channel state")
)

// errGivenUp is the cause with which the I/O of a checkpoint is cancelled that failed.
var errGivenUp = errors.New("channel state was given up")

// Errors of calls.
var (
	// ErrRegistered is returned by Start for an id that was started before.
	ErrRegistered = errors.New("channel state of the checkpoint was started before")
	// ErrClosed is returned by Join and Start after the end.
	ErrClosed = errors.New("channel-state writer closed")
)

// Error is why a subtask's channel state failed, with the reason for the JobManager.
type Error struct {
	Reason weir.FailureReason
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("channel state: %v", e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
