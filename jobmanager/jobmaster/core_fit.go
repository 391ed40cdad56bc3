package jobmaster

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/snapshotmeta"
)

// Verdict says what becomes of a part of a snapshot in a job that starts from it.
type Verdict uint8

// Verdicts.
const (
	FitTaken   Verdict = iota // the job takes it over
	FitDealt                  // it takes it over, dealt to another number of subtasks
	FitNew                    // the snapshot has nothing of it: it begins empty
	FitUnread                 // it goes along in checkpoints, and nothing of the job reads it
	FitDropped                // the job does without it, as the user allows
	FitRefused                // the job cannot start
)

var verdictNames = [...]string{"taken", "dealt", "new", "unread", "dropped", "refused"}

func (v Verdict) String() string { return verdictNames[min(int(v), len(verdictNames)-1)] }

// Fit is the verdict about one part: an operator, one of its states, or an edge with data
// in flight.
type Fit struct {
	Operator string
	Part     string // "operator", "hook", "state NAME", "in flight from NAME"
	Verdict  Verdict
	Text     string // for people: what differs, or why
}

// Fits compares a job with a snapshot (behaviour §11): operators are found by their
// names, in the order of the snapshot, then those that only the job has. text is the
// canonical text of the job's graph. That of the snapshot is read too, with care: it was
// written by another version of the job.
func Fits(graph *jobgraph.JobGraph, text string, s *snapshotmeta.Snapshot, o joboption.Recovery) []Fit {
	f := &fitting{graph: graph, text: text, snapshot: s, options: o, at: vertexOf(graph)}
	for i := range s.Operators {
		f.operator(&s.Operators[i])
	}
	for v := range graph.Vertices {
		for i, id := range graph.Vertices[v].IDs {
			if s.Operator(id) == nil {
				f.add(graph.Vertices[v].Operators[i], "operator", FitNew, "it is not in the snapshot")
			}
		}
	}
	f.hooks()
	f.inFlight()
	f.finished()
	return f.list
}

// CheckRestore says whether a job can start from a snapshot: all refusals of [Fits],
// joined.
func CheckRestore(graph *jobgraph.JobGraph, text string, s *snapshotmeta.Snapshot, o joboption.Recovery) error {
	var faults []error
	for _, f := range Fits(graph, text, s, o) {
		if f.Verdict == FitRefused {
			faults = append(faults, fmt.Errorf("%w: %s", ErrRestore, f.Text))
		}
	}
	return errors.Join(faults...)
}

// fitting is one comparison.
type fitting struct {
	graph    *jobgraph.JobGraph
	text     string
	snapshot *snapshotmeta.Snapshot
	options  joboption.Recovery
	at       map[weir.OperatorID]int
	list     []Fit
}

func (f *fitting) add(operator, part string, v Verdict, format string, args ...any) {
	f.list = append(f.list, Fit{Operator: operator, Part: part, Verdict: v, Text: fmt.Sprintf(format, args...)})
}

// hooks judges the master hooks of the snapshot and of the job.
func (f *fitting) hooks() {
	names := jobgraph.HooksOf(f.text)
	for _, h := range f.snapshot.Header.Hooks {
		at := slices.Index(names, h.Name)
		switch {
		case at >= 0:
			names = slices.Delete(names, at, at+1)
			f.add(h.Name, "hook", FitTaken, "its state is taken")
		case len(h.State) == 0 || f.options.IgnoreUnclaimed:
			f.add(h.Name, "hook", FitDropped, "the job has no master hook of that name; its state is left out")
		default:
			f.add(h.Name, "hook", FitRefused, "it has state of master hook %q, and the job has no hook of that name", h.Name)
		}
	}
	for _, name := range names {
		f.add(name, "hook", FitNew, "the snapshot has no master hook of that name; it starts without state")
	}
}

// operator judges one operator of the snapshot.
func (f *fitting) operator(o *snapshotmeta.Operator) {
	v, ok := f.at[o.ID]
	switch {
	case !ok && !hasState(o):
		f.add(o.Name, "operator", FitDropped, "the job has no operator of that name, and it has no state")
		return
	case !ok && f.options.IgnoreUnclaimed:
		f.add(o.Name, "operator", FitDropped, "the job has no operator of that name; its state is left out")
		return
	case !ok:
		f.add(o.Name, "operator", FitRefused, "it has state of operator %q, and the job has no operator of that name", o.Name)
		return
	}
	vertex := &f.graph.Vertices[v]
	switch {
	case !hasKeyed(o):
	case vertex.Parallelism > o.MaxParallelism:
		f.add(o.Name, "operator", FitRefused, "operator %q has parallelism %d, its state has only %d key groups", o.Name, vertex.Parallelism, o.MaxParallelism)
		return
	case vertex.MaxParallelism != o.MaxParallelism:
		f.add(o.Name, "operator", FitRefused, "operator %q has maximum parallelism %d, its state has %d key groups", o.Name, vertex.MaxParallelism, o.MaxParallelism)
		return
	}
	if vertex.Parallelism != o.Parallelism && hasState(o) {
		f.add(o.Name, "operator", FitDealt, "parallelism was %d, is %d", o.Parallelism, vertex.Parallelism)
	} else {
		f.add(o.Name, "operator", FitTaken, "parallelism %d", vertex.Parallelism)
	}
	f.states(o)
}

// timersPrefix begins the names of states that are not the user's. Their schemas are
// those of the program, not of the job.
const timersPrefix = "weir/"

// states judges the keyed states of an operator that both have.
func (f *fitting) states(o *snapshotmeta.Operator) {
	declared := statesIn(f.text, o.Name)
	var seen []string
	for i := range o.Subtasks {
		for _, was := range o.Subtasks[i].State.Schemas {
			if slices.Contains(seen, was.State) {
				continue
			}
			seen = append(seen, was.State)
			f.state(o.Name, was, declared)
		}
	}
	for _, is := range declared {
		if !slices.Contains(seen, is.State) {
			f.add(o.Name, "state "+is.State, FitNew, "it is not in the snapshot")
		}
	}
}

// state judges one state of the snapshot.
func (f *fitting) state(operator string, was weir.StateSchema, declared []weir.StateSchema) {
	part := "state " + was.State
	at := slices.IndexFunc(declared, func(is weir.StateSchema) bool { return is.State == was.State })
	switch {
	case at < 0:
		f.add(operator, part, FitUnread, "the operator does not declare it any more")
	case strings.HasPrefix(was.State, timersPrefix):
		f.add(operator, part, FitTaken, "timers")
	case declared[at].Key != was.Key:
		f.add(operator, part, FitRefused, "state %q of operator %q has keys of schema %s, and in the job of %s", was.State, operator, was.Key, declared[at].Key)
	case declared[at].Value != was.Value:
		f.add(operator, part, FitRefused, "state %q of operator %q has values of schema %s, and in the job of %s", was.State, operator, was.Value, declared[at].Value)
	default:
		f.add(operator, part, FitTaken, "schema is equal: %s → %s", was.Key, was.Value)
	}
}

// statesIn are the states that an operator declares, by a graph's canonical text.
func statesIn(text, operator string) []weir.StateSchema {
	prefix := fmt.Sprintf("operator %q state ", operator)
	var states []weir.StateSchema
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), prefix)
		if !ok {
			continue
		}
		var words []string
		for rest != "" {
			quoted, err := strconv.QuotedPrefix(rest)
			if err == nil {
				word, _ := strconv.Unquote(quoted) // QuotedPrefix has found it good
				words = append(words, word)
				rest = strings.TrimPrefix(rest[len(quoted):], " ")
				continue
			}
			_, rest, _ = strings.Cut(rest, " ") // a label
		}
		const name, key, value = 0, 2, 3 // "name" kind "…" key "…" value "…"
		if len(words) > value {
			states = append(states, weir.StateSchema{State: words[name], Key: words[key], Value: words[value]})
		}
	}
	return states
}

// inFlight judges the edges with data in flight (behaviour §21.3).
func (f *fitting) inFlight() {
	drop := f.options.DropsInFlight(f.snapshot.Header.Checkpoint)
	for _, x := range exchanges(f.snapshot) {
		part := "in flight from " + x.id.From
		err := checkExchange(f.graph, f.text, f.snapshot, x)
		switch {
		case drop:
			f.add(x.id.To, part, FitDropped, "in-flight data of checkpoint %d is dropped on request", f.snapshot.Header.Checkpoint)
		case err == nil:
			f.add(x.id.To, part, FitTaken, "%d ends of channels", len(x.channels))
		case f.options.IgnoreUnclaimed && edgeOf(f.graph, x.id) == nil && !f.hasBoth(x.id):
			f.add(x.id.To, part, FitDropped, "an operator of the edge is not in the job; its data is left out")
		default:
			f.add(x.id.To, part, FitRefused, "%s", strings.TrimPrefix(err.Error(), ErrRestore.Error()+": "))
		}
	}
}

// hasBoth says whether both operators of an edge are in the job.
func (f *fitting) hasBoth(id weir.EdgeID) bool {
	_, from := f.at[weir.OperatorIDOf(id.From)]
	_, to := f.at[weir.OperatorIDOf(id.To)]
	return from && to
}

// ends is how much of a vertex had finished in a snapshot.
type ends uint8

const (
	noneEnded ends = iota
	someEnded
	allEnded
)

// finished judges what had finished (behaviour §11): operators of one task finish
// together, and what follows a task that has not finished cannot have.
func (f *fitting) finished() {
	state := make([]ends, len(f.graph.Vertices))
	for v := range f.graph.Vertices {
		vertex := &f.graph.Vertices[v]
		for i, id := range vertex.IDs {
			e := endsOf(f.snapshot.Operator(id))
			if i > 0 && e != state[v] {
				f.add(vertex.Operators[i], "operator", FitRefused,
					"operators %q and %q are one task in the job, and in the snapshot not the same of their subtasks had finished", vertex.Operators[0], vertex.Operators[i])
			}
			if i == 0 {
				state[v] = e
			}
		}
	}
	for v := range f.graph.Vertices {
		for _, index := range f.graph.Vertices[v].Inputs {
			e := &f.graph.Edges[index]
			before, need := state[e.From], state[v]
			if need == someEnded && !e.Partitioning.Pointwise() {
				need = allEnded
			}
			if before < need {
				f.add(e.ToOperator, "operator", FitRefused,
					"operator %q had finished, at least in part, and reads from %q, which had not", e.ToOperator, e.FromOperator)
			}
		}
	}
}

func endsOf(o *snapshotmeta.Operator) ends {
	if o == nil {
		return noneEnded
	}
	n := 0
	for i := range o.Subtasks {
		if o.Subtasks[i].Finished {
			n++
		}
	}
	switch n {
	case 0:
		return noneEnded
	case o.Parallelism:
		return allEnded
	default:
		return someEnded
	}
}

// DropInFlight takes what was in flight out of a snapshot, if the options say so.
func DropInFlight(s *snapshotmeta.Snapshot, o joboption.Recovery) {
	if o.DropsInFlight(s.Header.Checkpoint) {
		s.Channels = nil
	}
}
