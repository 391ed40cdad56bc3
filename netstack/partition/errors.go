package partition

import (
	"errors"

	"github.com/weirflow/weir/netstack/wire"
)

// What a reader can be told.
var (
	// ErrReleased is the state of a subpartition that its consumer gave up.
	ErrReleased = errors.New("subpartition released")
	// ErrAttached is returned to a second reader of a subpartition.
	ErrAttached = errors.New("subpartition has a reader")
	// ErrNotBlocked is returned by Resume if there is nothing to resume.
	ErrNotBlocked = errors.New("resume of a subpartition that is not blocked")
	// ErrClosed is the cause if a task left before its last event.
	ErrClosed = errors.New("task ended before its output did")
)

// ErrRecordTooLarge is what Emit panics with if a record has more bytes than
// [wire.MaxElement] allows: the task's failure, not the process's.
var ErrRecordTooLarge = errors.New("record too large")

const maxRecord = wire.MaxElement - wire.MaxElementHead
