package lifecycle

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// State is where an attempt stands.
type State uint8

// States. The last three are final.
const (
	Created State = iota
	Initializing
	Running
	Finishing // its work is done, its goroutine has not ended yet
	Failing   // failed, its goroutine has not ended yet
	Canceling // told to stop, its goroutine has not ended yet
	Finished
	Failed
	Canceled
)

var stateNames = [...]string{"created", "initializing", "running", "finishing", "failing", "canceling", "finished", "failed", "canceled"}

func (s State) String() string { return stateNames[s] }

// Final says whether the attempt has ended.
func (s State) Final() bool { return s >= Finished }

// Event is what happened to an attempt.
//
//sumtype:decl
type Event interface {
	event()
	String() string
}

type (
	// Deploy asks for the attempt to start.
	Deploy struct{}
	// Restored says that it restored its state and processes records from now on.
	Restored struct{}
	// Finish says that it processed all its input and that its output is consumed.
	Finish struct{}
	// Fail says that it cannot go on.
	Fail struct{ Failure *weir.Failure }
	// Cancel asks for it to stop.
	Cancel struct{}
	// Exited says that its goroutine has ended.
	Exited struct{}
)

func (Deploy) event()   {}
func (Restored) event() {}
func (Finish) event()   {}
func (Fail) event()     {}
func (Cancel) event()   {}
func (Exited) event()   {}

func (Deploy) String() string   { return "deploy" }
func (Restored) String() string { return "restored" }
func (Finish) String() string   { return "finish" }
func (e Fail) String() string   { return fmt.Sprintf("fail: %v", e.Failure) }
func (Cancel) String() string   { return "cancel" }
func (Exited) String() string   { return "exited" }

// Action is what the owner must do.
//
//sumtype:decl
type Action interface {
	action()
	String() string
}

type (
	// Start starts the attempt's goroutine.
	Start struct{}
	// Interrupt makes the goroutine leave at the next element boundary.
	Interrupt struct{}
	// Report tells the JobManager of a new state.
	Report struct {
		State   State
		Failure *weir.Failure // of a failed attempt
	}
	// Release gives back what the attempt held: its slot, its series.
	Release struct{}
	// Note says why an event changed nothing.
	Note struct{ Text string }
)

func (Start) action()     {}
func (Interrupt) action() {}
func (Report) action()    {}
func (Release) action()   {}
func (Note) action()      {}

func (Start) String() string     { return "start" }
func (Interrupt) String() string { return "interrupt" }
func (a Report) String() string {
	if a.Failure != nil {
		return fmt.Sprintf("report %s: %v", a.State, a.Failure)
	}
	return fmt.Sprintf("report %s", a.State)
}
func (Release) String() string { return "release" }
func (a Note) String() string  { return "note: " + a.Text }

// Task is the life of one attempt. Only the loop that owns it may call it.
type Task struct {
	state   State
	failure *weir.Failure // the first one
}

// New returns the life of an attempt that was not deployed yet.
func New() *Task { return &Task{} }

// State returns where the attempt stands.
func (t *Task) State() State { return t.state }

// Step takes one event and says what to do.
func (t *Task) Step(ev Event) []Action {
	switch ev := ev.(type) {
	case Deploy:
		return t.onDeploy()
	case Restored:
		return t.onRestored()
	case Finish:
		return t.onFinish()
	case Fail:
		return t.onFail(ev)
	case Cancel:
		return t.onCancel()
	case Exited:
		return t.onExited()
	}
	return nil
}

func (t *Task) onDeploy() []Action {
	if t.state != Created {
		return t.note(Deploy{})
	}
	t.state = Initializing
	return []Action{Report{State: Initializing}, Start{}}
}

func (t *Task) onRestored() []Action {
	if t.state != Initializing {
		return t.note(Restored{})
	}
	t.state = Running
	return []Action{Report{State: Running}}
}

func (t *Task) onFinish() []Action {
	if t.state != Running {
		return t.note(Finish{})
	}
	t.state = Finishing
	return []Action{Note{"finished, waits for its goroutine"}}
}

func (t *Task) onFail(ev Fail) []Action {
	assert.That(ev.Failure != nil, "failed without a failure")
	switch t.state {
	case Created:
		t.failure = ev.Failure
		return t.end(Failed)
	case Initializing, Running, Finishing:
		t.state = Failing
		t.failure = ev.Failure
		return []Action{Interrupt{}}
	case Failing, Canceling, Finished, Failed, Canceled:
	}
	return t.note(ev)
}

func (t *Task) onCancel() []Action {
	switch t.state {
	case Created:
		return t.end(Canceled)
	case Initializing, Running, Finishing:
		t.state = Canceling
		return []Action{Report{State: Canceling}, Interrupt{}}
	case Failing, Canceling, Finished, Failed, Canceled:
	}
	return t.note(Cancel{})
}

func (t *Task) onExited() []Action {
	switch t.state {
	case Finishing:
		return t.end(Finished)
	case Failing:
		return t.end(Failed)
	case Canceling:
		return t.end(Canceled)
	case Initializing, Running:
		t.failure = &weir.Failure{Message: "the task's goroutine ended without a result"}
		return t.end(Failed)
	case Created, Finished, Failed, Canceled:
	}
	return t.note(Exited{})
}

// end is the only way into a final state.
func (t *Task) end(s State) []Action {
	assert.That(s.Final() && !t.state.Final(), "%d follows %d", s, t.state)
	t.state = s
	r := Report{State: s}
	if s == Failed {
		r.Failure = t.failure
	}
	return []Action{r, Release{}}
}

func (t *Task) note(ev Event) []Action {
	return []Action{Note{fmt.Sprintf("%s while %s", ev, t.state)}}
}
