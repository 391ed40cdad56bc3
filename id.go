package weir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// JobID names one submission of a job: 128 random bits, drawn by the JobManager.
type JobID [16]byte

// OperatorID names an operator across restarts and versions of a job; it is a
// hash of the operator's name, so state finds its operator by name.
type OperatorID [16]byte

// TaskManagerID names a TaskManager across its restarts; it is kept in its data
// directory.
type TaskManagerID [16]byte

// Incarnation tells one process of a TaskManager from the next: random per process.
type Incarnation uint64

// LeaderEpoch numbers the terms of JobManagers: the create revision of the
// election key. It only grows; whoever acts for a smaller one is refused.
type LeaderEpoch uint64

// CheckpointID numbers the snapshots of one job. Ids never repeat and never go
// back, whoever leads. The first is 1; 0 means "none".
type CheckpointID int64

// NoCheckpoint is the id of no checkpoint.
const NoCheckpoint CheckpointID = 0

// SubtaskID names one parallel instance of a vertex of a job graph.
type SubtaskID struct {
	Vertex  int32 // index into the job graph's vertices, in topological order
	Subtask int32 // 0 ≤ Subtask < parallelism
}

// AttemptID names one execution of a subtask. No two executions share one, not
// even across leaders.
type AttemptID struct {
	Job     JobID
	Vertex  int32
	Subtask int32
	Epoch   LeaderEpoch // the leader that deployed it
	N       int32       // grows with each deployment of the subtask within an epoch, from 1
}

// OperatorIDOf returns the identity of the operator with this name: the first
// 128 bits of the SHA-256 of "weir/operator/1\x00" and the name.
func OperatorIDOf(name string) OperatorID {
	sum := sha256.Sum256([]byte("weir/operator/1\x00" + name))
	return OperatorID(sum[:16])
}

func (id JobID) String() string         { return hex.EncodeToString(id[:]) }
func (id OperatorID) String() string    { return hex.EncodeToString(id[:]) }
func (id TaskManagerID) String() string { return hex.EncodeToString(id[:]) }
func (id SubtaskID) String() string     { return fmt.Sprintf("v%d[%d]", id.Vertex, id.Subtask) }

// String is short and for logs: the job's first eight digits, vertex, subtask, epoch and number.
func (id AttemptID) String() string {
	return fmt.Sprintf("%.8s/v%d[%d]#%d.%d", id.Job, id.Vertex, id.Subtask, id.Epoch, id.N)
}

// SubtaskID is the subtask that the attempt executes.
func (id AttemptID) SubtaskID() SubtaskID {
	return SubtaskID{Vertex: id.Vertex, Subtask: id.Subtask}
}

// IsZero says whether the id is unset.
func (id JobID) IsZero() bool { return id == JobID{} }

// ParseJobID reads the 32 hexadecimal digits that [JobID.String] writes.
func ParseJobID(s string) (JobID, error) {
	id, err := parse16(s)
	if err != nil {
		return JobID{}, fmt.Errorf("job id %q: %w", s, err)
	}
	return JobID(id), nil
}

// ParseOperatorID reads the 32 hexadecimal digits that [OperatorID.String] writes.
func ParseOperatorID(s string) (OperatorID, error) {
	id, err := parse16(s)
	if err != nil {
		return OperatorID{}, fmt.Errorf("operator id %q: %w", s, err)
	}
	return OperatorID(id), nil
}

// ParseTaskManagerID reads the 32 hexadecimal digits that [TaskManagerID.String] writes.
func ParseTaskManagerID(s string) (TaskManagerID, error) {
	id, err := parse16(s)
	if err != nil {
		return TaskManagerID{}, fmt.Errorf("task manager id %q: %w", s, err)
	}
	return TaskManagerID(id), nil
}

func parse16(s string) (id [16]byte, err error) {
	b, err := hex.DecodeString(s)
	if err != nil {
		return id, err
	}
	if len(b) != len(id) {
		return id, fmt.Errorf("want 32 hexadecimal digits, got %d", len(s))
	}
	copy(id[:], b)
	return id, nil
}
