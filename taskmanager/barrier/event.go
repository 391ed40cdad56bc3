package barrier

import (
	"fmt"

	"github.com/weirflow/weir"
)

// Event is something that the task met on one of its channels.
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
		ID      weir.CheckpointID
	}
	// EndOfPartition says that nothing more comes on the channel.
	EndOfPartition struct {
		Channel int
		Bytes   int64 // as in Barrier
	}
)

func (Barrier) event()        {}
func (Cancellation) event()   {}
func (Announcement) event()   {}
func (EndOfPartition) event() {}

func (e Barrier) String() string      { return fmt.Sprintf("barrier ch%d %d", e.Channel, e.Barrier.ID) }
func (e Cancellation) String() string { return fmt.Sprintf("cancellation ch%d %d", e.Channel, e.ID) }
func (e Announcement) String() string { return fmt.Sprintf("announcement ch%d %d", e.Channel, e.ID) }
func (e EndOfPartition) String() string {
	return fmt.Sprintf("end of partition ch%d", e.Channel)
}
