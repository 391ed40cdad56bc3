package snapshotmeta

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
)

// Snapshot is a completed checkpoint or savepoint.
type Snapshot struct {
	Header Header
	// Operators are those of the header's vertices, in that order.
	Operators []Operator
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

// AddTask files what one subtask of a vertex acknowledged under its operators.
// Tasks may be added in any order, each once.
func (s *Snapshot) AddTask(id weir.SubtaskID, state weir.TaskStateSnapshot) error { return ErrInvalid }

// Bytes is the size of the state: the lengths of all handles.
func (s *Snapshot) Bytes() int64 { return 0 }

// Handles calls fn with every handle that is not zero.
func (s *Snapshot) Handles(fn func(weir.StateHandle)) {}
