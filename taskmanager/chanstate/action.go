package chanstate

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir"
)

// Action is something that the group must do now.
//
//sumtype:decl
type Action interface {
	action()
	String() string
}

type (
	// Keep copies the bytes of the Write that it answers; there is room.
	Keep struct{}
	// Put writes all that a subtask captured to the checkpoint's file and frees it. The
	// first Put makes the file. Wrote answers.
	Put struct {
		Member Member
		ID     weir.CheckpointID
		Bytes  int64
	}
	// Commit makes the file durable. Committed answers.
	Commit struct{ ID weir.CheckpointID }
	// Drop frees what was captured and not put, and removes the file, if there is one.
	Drop struct{ ID weir.CheckpointID }
	// Answer tells a subtask how its channel state ended: with the handles of what it
	// captured, which may be none, or with an error.
	Answer struct {
		Member Member
		ID     weir.CheckpointID
		Err    error // an *Error, or nil
	}
	// Refuse is the answer to a Start that must not have been.
	Refuse struct{ Err error }
	// Note says why an event changed nothing.
	Note struct{ Text string }
)

func (Keep) action()   {}
func (Put) action()    {}
func (Commit) action() {}
func (Drop) action()   {}
func (Answer) action() {}
func (Refuse) action() {}
func (Note) action()   {}

func (a Keep) String() string   { return "keep" }
func (a Put) String() string    { return fmt.Sprintf("put s%d %d, %d bytes", a.Member, a.ID, a.Bytes) }
func (a Commit) String() string { return fmt.Sprintf("commit %d", a.ID) }
func (a Drop) String() string   { return fmt.Sprintf("drop %d", a.ID) }
func (a Answer) String() string {
	if a.Err == nil {
		return fmt.Sprintf("answer s%d %d", a.Member, a.ID)
	}
	var e *Error
	if errors.As(a.Err, &e) {
		return fmt.Sprintf("answer s%d %d %s: %v", a.Member, a.ID, e.Reason, e.Err)
	}
	return fmt.Sprintf("answer s%d %d: %v", a.Member, a.ID, a.Err)
}
func (a Refuse) String() string { return fmt.Sprintf("refuse: %v", a.Err) }
func (a Note) String() string   { return "note: " + a.Text }
