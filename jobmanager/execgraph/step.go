package execgraph

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
)

// Step takes an event and says what follows from it.
func (g *Graph) Step(ev Event) []Action {
	switch e := ev.(type) {
	case Create:
		return g.create(e)
	case Assign:
		return g.assign(e)
	case Deploy:
		return g.deploy(e)
	case Cancel:
		return g.cancel(e)
	case Report:
		return g.report(e)
	case Lose:
		return g.lose(e)
	}
	return nil
}

func (g *Graph) create(e Create) []Action {
	t := g.at(e.Subtask)
	if t.current.ID.N > 0 && !t.current.State.Final() {
		return note("%s has an attempt that is %s", e.Subtask, t.current.State)
	}
	if t.current.ID.N > 0 {
		g.counts[t.current.State]--
	}
	if t.current.ID.N > 0 && planted.Is(planted.AttemptReused) {
		t.current.ID.N--
	}
	t.current = Execution{ID: weir.AttemptID{
		Job: g.job, Vertex: e.Subtask.Vertex, Subtask: e.Subtask.Subtask, Epoch: g.epoch, N: t.current.ID.N + 1,
	}}
	g.counts[Created]++
	return nil
}

func (g *Graph) assign(e Assign) []Action {
	t := g.at(e.Subtask)
	if t.current.ID.N == 0 || t.current.State != Created {
		return note("%s is %s, not CREATED", e.Subtask, t.current.State)
	}
	t.current.At = e.At
	t.previous, t.placed = e.At, true
	return g.move(t, Scheduled, nil)
}

func (g *Graph) deploy(e Deploy) []Action {
	t := g.at(e.Subtask)
	if t.current.State != Scheduled {
		return note("%s is %s, not SCHEDULED", e.Subtask, t.current.State)
	}
	return append(g.move(t, Deploying, nil), DeployTask{t.current})
}

func (g *Graph) cancel(e Cancel) []Action {
	t := g.at(e.Subtask)
	switch s := t.current.State; {
	case t.current.ID.N == 0 || s.Final() || s == Canceling:
		return nil
	case !s.Deployed():
		return g.move(t, Canceled, nil)
	default:
		return append(g.move(t, Canceling, nil), CancelTask{t.current})
	}
}

func (g *Graph) report(e Report) []Action {
	t := g.lookup(e.Attempt)
	var acts []Action
	if e.State.Final() {
		acts = append(acts, ForgetTask{e.Attempt})
	}
	if t == nil || t.current.ID != e.Attempt {
		return append(acts, Note{fmt.Sprintf("%s of an attempt that is not current", e)})
	}
	next, ok := t.current.State.after(e.State)
	if !ok {
		return append(acts, Note{fmt.Sprintf("%s changes nothing, it is %s", e, t.current.State)})
	}
	failure := e.Failure
	switch {
	case next != Failed:
		failure = nil
	case failure == nil && e.State == Canceled:
		failure = &weir.Failure{Message: "the task was cancelled, but not by its JobManager"}
	case failure == nil:
		failure = &weir.Failure{Message: "the task failed without saying why"}
	}
	return append(acts, g.move(t, next, failure)...)
}

func (g *Graph) lose(e Lose) []Action {
	var acts []Action
	for id := range g.Subtasks() {
		t := g.at(id)
		s := t.current.State
		if s < Scheduled || s.Final() || t.current.At.TaskManager != e.TaskManager || t.current.At.Incarnation != e.Incarnation {
			continue
		}
		if s == Canceling {
			acts = append(acts, g.move(t, Canceled, nil)...)
		} else {
			acts = append(acts, g.move(t, Failed, e.Failure)...)
		}
	}
	return acts
}

// move changes the current attempt's state.
func (g *Graph) move(t *subtask, next State, failure *weir.Failure) []Action {
	from := t.current.State
	g.counts[from]--
	g.counts[next]++
	t.current.State, t.current.Failure = next, failure
	return []Action{Changed{Execution: t.current, From: from}}
}

func note(format string, args ...any) []Action {
	return []Action{Note{fmt.Sprintf(format, args...)}}
}
