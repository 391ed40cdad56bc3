package chanstate

import (
	"fmt"

	"github.com/weirflow/weir"
)

// Member numbers a subtask of a group; no number is used twice.
type Member int32

// Side is one half of a subtask's channel state.
type Side uint8

// Sides.
const (
	InputSide Side = iota
	OutputSide
)

var sideNames = [...]string{"input", "output"}

func (s Side) String() string {
	if int(s) < len(sideNames) {
		return sideNames[s]
	}
	return fmt.Sprintf("Side(%d)", s)
}

// Event is something that a subtask of the group wants, or that the goroutine has done.
//
//sumtype:decl
type Event interface {
	event()
	String() string
}

type (
	// Join adds a subtask to the group.
	Join struct{ Member Member }
	// Leave takes it out; it is not answered any more.
	Leave struct{ Member Member }
	// Start begins a subtask's channel state of a checkpoint.
	Start struct {
		Member Member
		ID     weir.CheckpointID
	}
	// Write asks for room for captured bytes.
	Write struct {
		Member Member
		ID     weir.CheckpointID
		Side   Side
		Bytes  int64
	}
	// Finish ends one side.
	Finish struct {
		Member Member
		ID     weir.CheckpointID
		Side   Side
	}
	// Abort gives a checkpoint and all older ones up.
	Abort struct {
		Member Member
		ID     weir.CheckpointID
		Cause  error
	}
	// Wrote says that what Put asked for was done, or failed.
	Wrote struct {
		Member Member
		ID     weir.CheckpointID
		Bytes  int64
		Err    error
	}
	// Committed says the same of Commit.
	Committed struct {
		ID  weir.CheckpointID
		Err error
	}
)

func (Join) event()      {}
func (Leave) event()     {}
func (Start) event()     {}
func (Write) event()     {}
func (Finish) event()    {}
func (Abort) event()     {}
func (Wrote) event()     {}
func (Committed) event() {}

func (e Join) String() string  { return fmt.Sprintf("join s%d", e.Member) }
func (e Leave) String() string { return fmt.Sprintf("leave s%d", e.Member) }
func (e Start) String() string { return fmt.Sprintf("start s%d %d", e.Member, e.ID) }
func (e Write) String() string {
	return fmt.Sprintf("write s%d %d %s %d bytes", e.Member, e.ID, e.Side, e.Bytes)
}
func (e Finish) String() string { return fmt.Sprintf("finish s%d %d %s", e.Member, e.ID, e.Side) }
func (e Abort) String() string  { return fmt.Sprintf("abort s%d %d: %v", e.Member, e.ID, e.Cause) }
func (e Wrote) String() string  { return fmt.Sprintf("wrote s%d %d: %v", e.Member, e.ID, e.Err) }
func (e Committed) String() string {
	return fmt.Sprintf("committed %d: %v", e.ID, e.Err)
}
