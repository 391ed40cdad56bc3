package snapshot

import (
	"errors"

	"github.com/weirflow/weir"
)

// Errors of an executor.
var (
	// ErrBusy: too much waits to be written.
	ErrBusy = errors.New("too many snapshots wait to be written")
	// ErrClosed: the executor was closed.
	ErrClosed = errors.New("snapshot executor closed")
)

// errAborted is the cause with which an asynchronous part is cancelled.
var errAborted = errors.New("checkpoint aborted")

// ReasonError is an error of an asynchronous part that knows its reason for the
// JobManager; others mean CHECKPOINT_ASYNC_EXCEPTION.
type ReasonError struct {
	Reason weir.FailureReason
	Err    error
}

func (e *ReasonError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *ReasonError) Unwrap() error { return e.Err }

func reasonOf(err error) weir.FailureReason {
	var r *ReasonError
	if errors.As(err, &r) {
		return r.Reason
	}
	return weir.CheckpointAsyncException
}
