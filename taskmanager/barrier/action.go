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
	// Trigger starts the snapshot. If it is aligned, everything before the barriers
	// is processed and nothing behind them is. If it is unaligned, what is missing
	// before the barriers that are not in is recorded: Record actions follow in the
	// list, and a Recorded or an Abort of the checkpoint in this list or a later one.
	Trigger struct {
		// Barrier is what goes on downstream, with the age that it has now. Its
		// alignment is Aligned, then with the timeout that it still has, or
		// Unaligned, or AtLeastOnce; never ForcedAligned.
		Barrier weir.Barrier
		Stats   Alignment
	}
	// Block keeps the task from taking what lies behind a channel's barrier; the
	// channel's sender has stopped there by itself.
	Block struct{ Channel int }
	// Resume lets a channel's sender go on behind its barrier, and the task take
	// from the channel.
	Resume struct{ Channel int }
	// Record captures a channel from now on, for the checkpoint triggered last: first
	// what the task has taken from it and not processed, then all that the task takes
	// from it, each before it is processed. If the barrier of a newer checkpoint is
	// in the channel's queue, the task answers by GivenUp when it has carried out the
	// list.
	Record struct{ Channel int }
	// StopRecording ends the capture of a channel.
	StopRecording struct {
		Channel int
		// Arrived says that the channel's barrier is in, or that it ended: what is
		// queued with a smaller sequence number than the barrier's is captured too.
		// Else the checkpoint was given up, and what was captured is of no use.
		Arrived bool
	}
	// Recorded says that an unaligned checkpoint's input is captured as a whole.
	Recorded struct {
		ID    weir.CheckpointID
		Stats Alignment // as they are now that the last barrier is in
	}
	// ToHead moves the announced barrier of a channel to the head of its queue. It
	// comes back as a Barrier, with its options unchanged.
	ToHead struct {
		Channel int
		ID      weir.CheckpointID
	}
	// ArmTimer asks for a Timer event. At most one timer is armed.
	ArmTimer struct {
		ID    weir.CheckpointID
		After time.Duration
	}
	// CancelTimer calls the timer off.
	CancelTimer struct{ ID weir.CheckpointID }
	// Abort gives a checkpoint up on this task. An unaligned one may have been
	// triggered before. Whatever is captured for it and older ones is of no use.
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
	Duration   time.Duration // from the first to the last barrier so far
	Bytes      int64         // processed between the first and the last barrier so far
	// Overtook says that the snapshot did not wait for all barriers. A checkpoint
	// that was forced to align here goes on as unaligned without it.
	Overtook bool
}

func (Trigger) action()       {}
func (Block) action()         {}
func (Resume) action()        {}
func (Record) action()        {}
func (StopRecording) action() {}
func (Recorded) action()      {}
func (ToHead) action()        {}
func (ArmTimer) action()      {}
func (CancelTimer) action()   {}
func (Abort) action()         {}
func (Note) action()          {}

func (a Trigger) String() string {
	s := fmt.Sprintf("trigger %d", a.Barrier.ID)
	if text := alignmentText(a.Barrier.Options); text != weir.Aligned.String() {
		s += " " + text
	}
	return fmt.Sprintf("%s age=%s %s", s, a.Barrier.Age, a.Stats)
}
func (a Block) String() string  { return fmt.Sprintf("block ch%d", a.Channel) }
func (a Resume) String() string { return fmt.Sprintf("resume ch%d", a.Channel) }
func (a Record) String() string { return fmt.Sprintf("record ch%d", a.Channel) }
func (a StopRecording) String() string {
	if a.Arrived {
		return fmt.Sprintf("stop recording ch%d", a.Channel)
	}
	return fmt.Sprintf("drop recording ch%d", a.Channel)
}
func (a Recorded) String() string { return fmt.Sprintf("recorded %d %s", a.ID, a.Stats) }
func (a ToHead) String() string {
	return fmt.Sprintf("move barrier %d to the head of ch%d", a.ID, a.Channel)
}
func (a ArmTimer) String() string    { return fmt.Sprintf("arm timer %d at +%s", a.ID, a.After) }
func (a CancelTimer) String() string { return fmt.Sprintf("cancel timer %d", a.ID) }
func (a Abort) String() string       { return fmt.Sprintf("abort %d %s", a.ID, a.Reason) }
func (a Note) String() string        { return "note: " + a.Text }

func (a Alignment) String() string {
	s := fmt.Sprintf("delay=%s aligned=%s bytes=%d", a.StartDelay, a.Duration, a.Bytes)
	if a.Overtook {
		s += " overtook"
	}
	return s
}
