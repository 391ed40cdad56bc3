package chanstate

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
)

// DefaultMemory is how many captured bytes a group holds at most.
const DefaultMemory = 64 << 20

// DefaultSubtasks is how many subtasks share a file at most.
const DefaultSubtasks = 5

// Options say whose channel state it is and where it goes.
type Options struct {
	Attempt   weir.AttemptID
	Store     blobstore.Store // the checkpoint store
	Directory string          // the job's, in the store
	// Subtasks is how many subtasks of the job share a file at most, and Memory how
	// many captured bytes they hold together; 0: the defaults. Those of a group's
	// first subtask count.
	Subtasks int
	Memory   int64
	// Done is given the result of each start. It is called by chanstate/writer and
	// must not wait, for example it posts a letter.
	Done func(Result)
}

// Result is how a subtask's channel state of one checkpoint ended.
type Result struct {
	ID weir.CheckpointID
	// Channels are the ends of channels of which something was captured; durable.
	Channels []weir.ChannelStateHandle
	Bytes    int64 // captured
	Err      error // an *Error
}
