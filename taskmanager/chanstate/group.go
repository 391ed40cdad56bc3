package chanstate

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/internal/group"
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
	// Channels are the sides of channels of which something was captured; durable.
	Channels []weir.ChannelStateHandle
	Bytes    int64 // captured
	Err      error // an *Error
}

// Groups are the channel-state writers of a TaskManager. Any goroutine may call it.
type Groups struct{}

// NewGroups returns a TaskManager's writers, whose goroutines are of g.
func NewGroups(g *group.Group) *Groups { return &Groups{} }

// Join adds a task to a group of its job, or makes one.
func (g *Groups) Join(o Options) (*Subtask, error) { return &Subtask{}, nil }

// Subtask is one task's channel-state writer. Any goroutine may call it; calls do not
// wait.
type Subtask struct{}

// Start begins the channel state of a checkpoint; location is that of its options.
// [ErrRegistered] is a bug of the caller, [ErrClosed] comes after Close; whatever
// else is wrong is answered by Done.
func (s *Subtask) Start(id weir.CheckpointID, location string) error { return nil }

// Input captures bytes of an input channel at the consumer, after those captured of
// it before. base is that of the segment that held them. The bytes are copied.
func (s *Subtask) Input(id weir.CheckpointID, edge weir.EdgeID, producer int32, base int64, b []byte) {
}

// Output captures bytes of a subpartition at the producer, as Input does.
func (s *Subtask) Output(id weir.CheckpointID, edge weir.EdgeID, consumer int32, base int64, b []byte) {
}

// FinishInput says that all input of a checkpoint is captured.
func (s *Subtask) FinishInput(id weir.CheckpointID) {}

// FinishOutput says that all output of a checkpoint is captured.
func (s *Subtask) FinishOutput(id weir.CheckpointID) {}

// Abort gives up a checkpoint and all older ones, now or whenever they are started.
func (s *Subtask) Abort(id weir.CheckpointID, cause error) {}

// Close takes the task out of its group. Done is not called any more once it returned,
// except for a call that is under way.
func (s *Subtask) Close() {}
