package barrier

import (
	"fmt"

	"github.com/weirflow/weir"
)

// Event is something that the task met on one of its channels, or that became of
// what it was told to do.
//
//sumtype:decl
type Event interface {
	event()
	String() string
}

type (
	// Barrier is a checkpoint barrier at the head of a channel.
	Barrier struct {
		Channel int
		// Barrier has the age that the barrier has now.
		Barrier weir.Barrier
		// Bytes are what the task has processed of all its channels so far.
		Bytes int64
		// FromRPC says that the task made the barrier itself, of a trigger that it
		// was sent, for a channel that has not ended. No sender stopped behind it.
		FromRPC bool
	}
	// Cancellation is a marker that takes the place of the barrier of a
	// checkpoint that an upstream task has given up.
	Cancellation struct {
		Channel int
		ID      weir.CheckpointID
	}
	// Announcement says that a barrier which may time out sits further back in
	// the channel.
	Announcement struct {
		Channel int
		Barrier weir.Barrier // with the age that it has now
	}
	// EndOfPartition says that nothing more comes on the channel.
	EndOfPartition struct {
		Channel int
		Bytes   int64 // as in Barrier
	}
	// Timer says that a timer fired which ArmTimer had armed.
	Timer struct {
		ID    weir.CheckpointID
		Bytes int64 // as in Barrier
	}
	// GivenUp says that the task cannot go on with a checkpoint: the barrier of a
	// newer one was found in the queue of a channel that was to be recorded
	// (CheckpointSubsumed, behaviour §19), or what was captured found no room, or the
	// JobManager has aborted it.
	GivenUp struct {
		ID     weir.CheckpointID
		Reason weir.FailureReason
	}
)

func (Barrier) event()        {}
func (Cancellation) event()   {}
func (Announcement) event()   {}
func (EndOfPartition) event() {}
func (Timer) event()          {}
func (GivenUp) event()        {}

func (e Barrier) String() string {
	s := fmt.Sprintf("barrier ch%d %d %s", e.Channel, e.Barrier.ID, alignmentText(e.Barrier.Options))
	if e.FromRPC {
		s += " rpc"
	}
	return s
}
func (e Cancellation) String() string { return fmt.Sprintf("cancellation ch%d %d", e.Channel, e.ID) }
func (e Announcement) String() string {
	return fmt.Sprintf("announcement ch%d %d", e.Channel, e.Barrier.ID)
}
func (e EndOfPartition) String() string { return fmt.Sprintf("end of partition ch%d", e.Channel) }
func (e Timer) String() string          { return fmt.Sprintf("timer %d", e.ID) }
func (e GivenUp) String() string        { return fmt.Sprintf("given up %d %s", e.ID, e.Reason) }
