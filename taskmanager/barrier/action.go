package barrier

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// Action is something that the task must do now.
//
//sumtype:decl
type Action interface {
	action()
	String() string
}

type (
	// Trigger starts the snapshot: everything before the barriers is processed,
	// nothing behind them is.
	Trigger struct {
		// Barrier is what goes on downstream, with the age that it has now.
		Barrier weir.Barrier
		Stats   Alignment
	}
	// Block keeps the task from taking more from a channel.
	Block struct{ Channel int }
	// Resume lets a channel's sender go on behind its barrier, and the task take
	// from the channel.
	Resume struct{ Channel int }
	// Abort gives a checkpoint up on this task.
	Abort struct {
		ID     weir.CheckpointID
		Reason weir.FailureReason
	}
	// Note says why an event changed nothing.
	Note struct{ Text string }
)

// Alignment are the statistics of one alignment (behaviour §15.2).
type Alignment struct {
	StartDelay time.Duration // from the checkpoint's trigger to the first barrier
	Duration   time.Duration // from the first to the last barrier
	Bytes      int64         // processed between the first and the last barrier
}

func (Trigger) action() {}
func (Block) action()   {}
func (Resume) action()  {}
func (Abort) action()   {}
func (Note) action()    {}

func (a Trigger) String() string {
	return fmt.Sprintf("trigger %d age=%s delay=%s aligned=%s bytes=%d",
		a.Barrier.ID, a.Barrier.Age, a.Stats.StartDelay, a.Stats.Duration, a.Stats.Bytes)
}
func (a Block) String() string  { return fmt.Sprintf("block ch%d", a.Channel) }
func (a Resume) String() string { return fmt.Sprintf("resume ch%d", a.Channel) }
func (a Abort) String() string  { return fmt.Sprintf("abort %d %s", a.ID, a.Reason) }
func (a Note) String() string   { return "note: " + a.Text }
