package snapshotmeta

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
)

// Snapshot is a completed checkpoint or savepoint.
type Snapshot struct {
	Header Header
	// Operators are those of the header's vertices, in that order.
	Operators []Operator
	// Channels is what was in flight, if the checkpoint did not align.
	Channels []weir.ChannelStateHandle
}

// Header says whose snapshot it is, and of which job graph.
type Header struct {
	Job        weir.JobID
	JobName    string
	Checkpoint weir.CheckpointID
	Kind       weir.SnapshotKind
	Epoch      weir.LeaderEpoch // of the JobManager that wrote it
	Entrypoint string
	Params     map[string]string
	CodeID     string
	GraphHash  jobgraph.Digest
	GraphText  string
	Vertices   []Vertex
	Triggered  time.Time // to the millisecond
	Completed  time.Time
	Hooks      []Hook
}

// Hook is the state of a master hook.
type Hook struct {
	Name  string
	State []byte
}

// Vertex is a vertex of the physical plan as it was.
type Vertex struct {
	Name           string
	Parallelism    int
	MaxParallelism int
	Operators      []OperatorRef // head of the chain first
}

// OperatorRef names an operator.
type OperatorRef struct {
	ID   weir.OperatorID
	Name string
}

// Operator is the state of all subtasks of one operator.
type Operator struct {
	OperatorRef
	Vertex         int
	Parallelism    int
	MaxParallelism int
	Coordinator    weir.StateHandle // of its enumerator, if it is a source
	Subtasks       []Subtask        // in order of their index; only those that were recorded
}

// Subtask is the state of one subtask of an operator.
type Subtask struct {
	Index    int32
	Finished bool // it had finished, and has no state any more
	State    weir.OperatorSubtaskState
}

// Vertices returns the physical plan of a job graph as a header records it.
func Vertices(g *jobgraph.JobGraph) []Vertex {
	vertices := make([]Vertex, len(g.Vertices))
	for i, v := range g.Vertices {
		vertices[i] = Vertex{Name: v.Name, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism}
		for j, name := range v.Operators {
			vertices[i].Operators = append(vertices[i].Operators, OperatorRef{ID: v.IDs[j], Name: name})
		}
	}
	return vertices
}

// New returns a snapshot of this header with an empty entry per operator, to be
// filled in.
func New(h Header) *Snapshot {
	s := &Snapshot{Header: h}
	for v, vertex := range h.Vertices {
		for _, ref := range vertex.Operators {
			s.Operators = append(s.Operators, Operator{
				OperatorRef: ref, Vertex: v, Parallelism: vertex.Parallelism, MaxParallelism: vertex.MaxParallelism,
			})
		}
	}
	return s
}

// Operator finds an operator by id, or returns nil.
func (s *Snapshot) Operator(id weir.OperatorID) *Operator {
	for i := range s.Operators {
		if s.Operators[i].ID == id {
			return &s.Operators[i]
		}
	}
	return nil
}

// AddTask files what one subtask of a vertex acknowledged under its operators. Tasks
// may be added in any order, each once. A finished one without operators is noted as
// finished under all operators of the vertex. Of in-flight data only [Write] finds
// what is wrong.
func (s *Snapshot) AddTask(id weir.SubtaskID, state weir.TaskStateSnapshot) error {
	if state.Finished && len(state.Operators) == 0 {
		for _, op := range s.Operators {
			if op.Vertex == int(id.Vertex) {
				state.Operators = append(state.Operators, weir.OperatorSubtaskState{Operator: op.ID, Name: op.Name})
			}
		}
		if len(state.Operators) == 0 {
			return fmt.Errorf("finished subtask %s: %w: no such vertex", id, ErrInvalid)
		}
	}
	for _, op := range state.Operators {
		if err := s.add(id, Subtask{Index: id.Subtask, Finished: state.Finished, State: op}); err != nil {
			return fmt.Errorf("state of subtask %s: %w", id, err)
		}
	}
	s.Channels = append(s.Channels, state.Channels...)
	return nil
}

// add files one operator subtask's state, in order of the index.
func (s *Snapshot) add(id weir.SubtaskID, sub Subtask) error {
	op, err := s.fits(id, &sub)
	if err != nil {
		return err
	}
	at, found := slices.BinarySearchFunc(op.Subtasks, sub.Index, func(have Subtask, index int32) int { return cmp.Compare(have.Index, index) })
	if found {
		return twice(op, sub.Index)
	}
	op.Subtasks = slices.Insert(op.Subtasks, at, sub)
	return nil
}

// twice is the error of a second state of one subtask.
func twice(op *Operator, index int32) error {
	return fmt.Errorf("%w: subtask %d of operator %q has two states", ErrInvalid, index, op.Name)
}

// fits returns the operator that a subtask's state belongs to, if the header names it
// and the state can be its.
func (s *Snapshot) fits(id weir.SubtaskID, sub *Subtask) (*Operator, error) {
	op := s.Operator(sub.State.Operator)
	if op == nil || op.Vertex != int(id.Vertex) {
		return nil, fmt.Errorf("%w: no operator %s (%q) in vertex %d", ErrInvalid, sub.State.Operator, sub.State.Name, id.Vertex)
	}
	if sub.Index < 0 || int(sub.Index) >= op.Parallelism {
		return nil, fmt.Errorf("%w: operator %q has no subtask %d, parallelism is %d", ErrInvalid, op.Name, sub.Index, op.Parallelism)
	}
	for _, e := range sub.State.Elements {
		if e.IsZero() {
			return nil, fmt.Errorf("%w: operator %q has an element of state without a handle", ErrInvalid, op.Name)
		}
	}
	for _, k := range sub.State.Keyed {
		if k.Range.First < 0 || int(k.Range.Last) >= op.MaxParallelism || k.Range.First > k.Range.Last {
			return nil, fmt.Errorf("%w: operator %q has key groups %s, maximum parallelism is %d", ErrInvalid, op.Name, k.Range, op.MaxParallelism)
		}
	}
	return op, nil
}

// Bytes is the size of the state: the lengths of all handles.
func (s *Snapshot) Bytes() int64 {
	var n int64
	s.Handles(func(h weir.StateHandle) { n += handleLength(h) })
	return n
}

// Handles calls fn with every handle that is not zero.
func (s *Snapshot) Handles(fn func(weir.StateHandle)) {
	call := func(h weir.StateHandle) {
		if !h.IsZero() {
			fn(h)
		}
	}
	for i := range s.Operators {
		op := &s.Operators[i]
		call(op.Coordinator)
		for _, sub := range op.Subtasks {
			subtaskHandles(sub.State, call)
		}
	}
	for i := range s.Channels {
		call(s.Channels[i].Handle)
	}
}

// TaskHandles calls fn with every handle of an acknowledged state that is not zero.
func TaskHandles(state weir.TaskStateSnapshot, fn func(weir.StateHandle)) {
	call := func(h weir.StateHandle) {
		if !h.IsZero() {
			fn(h)
		}
	}
	for _, op := range state.Operators {
		subtaskHandles(op, call)
	}
	for i := range state.Channels {
		call(state.Channels[i].Handle)
	}
}

// subtaskHandles calls fn with every handle of one operator's subtask, zero ones too.
func subtaskHandles(state weir.OperatorSubtaskState, fn func(weir.StateHandle)) {
	for _, e := range state.Elements {
		fn(e)
	}
	for _, k := range state.Keyed {
		fn(k.Handle)
	}
}

// handleLength is how many bytes a handle refers to.
func handleLength(h weir.StateHandle) int64 {
	if h.File == "" {
		return int64(len(h.Inline))
	}
	return h.Length
}
