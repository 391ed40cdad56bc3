package execgraph

import (
	"fmt"

	"github.com/weirflow/weir"
)

// Event is something that happened to the graph's attempts.
//
//sumtype:decl
type Event interface {
	event()
	String() string
}

type (
	// Create gives a subtask a new attempt. Its current one must be final.
	Create struct{ Subtask weir.SubtaskID }
	// Assign gives a created attempt its slot.
	Assign struct {
		Subtask weir.SubtaskID
		At      Location
	}
	// Deploy sends a scheduled attempt to its TaskManager.
	Deploy struct{ Subtask weir.SubtaskID }
	// Cancel ends a subtask's current attempt. One that is final or cancelling is left alone.
	Cancel struct{ Subtask weir.SubtaskID }
	// Report is what a TaskManager says of an attempt.
	Report struct {
		Attempt weir.AttemptID
		State   State
		Failure *weir.Failure
	}
	// Lose ends all attempts on a TaskManager that is gone.
	Lose struct {
		TaskManager weir.TaskManagerID
		Incarnation weir.Incarnation
		Failure     *weir.Failure
	}
)

func (Create) event() {}
func (Assign) event() {}
func (Deploy) event() {}
func (Cancel) event() {}
func (Report) event() {}
func (Lose) event()   {}

func (e Create) String() string { return fmt.Sprintf("create %s", e.Subtask) }
func (e Assign) String() string { return fmt.Sprintf("assign %s to %s", e.Subtask, e.At) }
func (e Deploy) String() string { return fmt.Sprintf("deploy %s", e.Subtask) }
func (e Cancel) String() string { return fmt.Sprintf("cancel %s", e.Subtask) }
func (e Report) String() string { return fmt.Sprintf("report %s %s", e.Attempt, e.State) }
func (e Lose) String() string   { return fmt.Sprintf("lose %.8s.%d", e.TaskManager, e.Incarnation) }

func (l Location) String() string {
	return fmt.Sprintf("%.8s.%d/%d", l.TaskManager, l.Incarnation, l.Slot)
}

// Action is what is to be done, or what became of an attempt.
//
//sumtype:decl
type Action interface {
	action()
	String() string
}

type (
	// DeployTask: send the deployment of this attempt.
	DeployTask struct{ Execution Execution }
	// CancelTask: tell its TaskManager to end the attempt.
	CancelTask struct{ Execution Execution }
	// ForgetTask: tell whoever reported it that the attempt's final state is known.
	ForgetTask struct{ Attempt weir.AttemptID }
	// Changed says that an attempt has a new state.
	Changed struct {
		Execution Execution
		From      State
	}
	// Note says that an event changed nothing, and why.
	Note struct{ Text string }
)

func (DeployTask) action() {}
func (CancelTask) action() {}
func (ForgetTask) action() {}
func (Changed) action()    {}
func (Note) action()       {}

func (a DeployTask) String() string {
	return fmt.Sprintf("deploy %s at %s", short(a.Execution.ID), a.Execution.At)
}
func (a CancelTask) String() string { return fmt.Sprintf("cancel %s", short(a.Execution.ID)) }
func (a ForgetTask) String() string { return fmt.Sprintf("forget %s", short(a.Attempt)) }
func (a Changed) String() string {
	s := fmt.Sprintf("%s %s -> %s", short(a.Execution.ID), a.From, a.Execution.State)
	if a.Execution.Failure != nil {
		s += ": " + a.Execution.Failure.Error()
	}
	return s
}
func (a Note) String() string { return "note: " + a.Text }

// short is an attempt within its job.
func short(id weir.AttemptID) string {
	return fmt.Sprintf("%s#%d.%d", id.SubtaskID(), id.Epoch, id.N)
}
