package resource

import (
	"fmt"

	"github.com/weirflow/weir"
)

// TaskManager is what the table needs to know of one.
type TaskManager struct {
	ID          weir.TaskManagerID
	Incarnation weir.Incarnation
	CodeID      string
	Host        string // for people
	Slots       int
}

// Slot is one of a TaskManager's slots.
type Slot struct {
	TaskManager weir.TaskManagerID
	Incarnation weir.Incarnation
	Index       int
}

func (s Slot) String() string {
	return fmt.Sprintf("%.8s.%d/%d", s.TaskManager, s.Incarnation, s.Index)
}

// Want is one slot that a job asks for.
type Want struct {
	// Prefer is where it would best be; the zero id means anywhere.
	Prefer weir.TaskManagerID
}

// Event is something that happened to TaskManagers or jobs.
//
//sumtype:decl
type Event interface {
	event()
	String() string
}

type (
	// Register adds a TaskManager. Running lists attempts that still run on it; they
	// were told to stop.
	Register struct {
		TaskManager TaskManager
		Running     []weir.AttemptID
	}
	// Ended says that an attempt has ended on a TaskManager.
	Ended struct {
		TaskManager weir.TaskManagerID
		Attempt     weir.AttemptID
	}
	// Gone removes a TaskManager: its session broke or it was silent for too long.
	Gone struct {
		ID          weir.TaskManagerID
		Incarnation weir.Incarnation
		Reason      string
	}
	// Request asks for slots for a job. It replaces an earlier request of the job
	// that was not granted yet.
	Request struct {
		Job    weir.JobID
		N      uint64 // chosen by the job, told back in the answer
		CodeID string
		Wants  []Want
	}
	// Return gives back slots that a job has no use for, because its need had changed
	// when they came.
	Return struct {
		Job   weir.JobID
		Slots []Slot
	}
	// Release gives back all slots of a job and forgets its request.
	Release struct{ Job weir.JobID }
)

func (Register) event() {}
func (Ended) event()    {}
func (Gone) event()     {}
func (Request) event()  {}
func (Return) event()   {}
func (Release) event()  {}

func (e Register) String() string {
	return fmt.Sprintf("register %.8s.%d", e.TaskManager.ID, e.TaskManager.Incarnation)
}
func (e Ended) String() string { return fmt.Sprintf("ended %s on %.8s", e.Attempt, e.TaskManager) }
func (e Gone) String() string  { return fmt.Sprintf("gone %.8s.%d", e.ID, e.Incarnation) }
func (e Request) String() string {
	return fmt.Sprintf("request %d slots for %.8s", len(e.Wants), e.Job)
}
func (e Return) String() string  { return fmt.Sprintf("return %v of %.8s", e.Slots, e.Job) }
func (e Release) String() string { return fmt.Sprintf("release %.8s", e.Job) }

// Action is what follows.
//
//sumtype:decl
type Action interface {
	action()
	String() string
}

type (
	// Granted gives a job the slots it asked for, in the order of its wants.
	Granted struct {
		Job   weir.JobID
		N     uint64 // of the request
		Slots []Slot
	}
	// Short says why a job's request waits.
	Short struct {
		Job    weir.JobID
		N      uint64 // of the request
		Wanted int
		Free   int    // slots that it could have had
		Text   string // for people
	}
	// Lost says that a TaskManager is gone, with its slots and what ran in them.
	Lost struct {
		ID          weir.TaskManagerID
		Incarnation weir.Incarnation
		Reason      string
	}
	// Note says that an event changed nothing, and why.
	Note struct{ Text string }
)

func (Granted) action() {}
func (Short) action()   {}
func (Lost) action()    {}
func (Note) action()    {}

func (a Granted) String() string { return fmt.Sprintf("grant %.8s %v", a.Job, a.Slots) }
func (a Short) String() string   { return fmt.Sprintf("%.8s waits: %s", a.Job, a.Text) }
func (a Lost) String() string {
	return fmt.Sprintf("lost %.8s.%d: %s", a.ID, a.Incarnation, a.Reason)
}
func (a Note) String() string { return "note: " + a.Text }
