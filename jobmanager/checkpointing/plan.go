package checkpointing

import (
	"fmt"

	"github.com/weirflow/weir"
)

// TaskStatus is where a subtask's current attempt stands, as far as plans care.
type TaskStatus uint8

// Task statuses.
const (
	TaskMissing  TaskStatus = iota // there is no current attempt
	TaskWaiting                    // created, scheduled or deploying
	TaskStarting                   // initializing: it has a mailbox, but restores
	TaskRunning
	TaskFinished
	TaskEnding // being cancelled, cancelled or failed
)

var taskStatusNames = [...]string{"missing", "waiting", "starting", "running", "finished", "ending"}

func (s TaskStatus) String() string {
	if int(s) < len(taskStatusNames) {
		return taskStatusNames[s]
	}
	return fmt.Sprintf("TaskStatus(%d)", s)
}

// SubtaskView is one subtask.
type SubtaskView struct {
	Attempt weir.AttemptID
	Status  TaskStatus
}

// InputView is one input of a vertex.
type InputView struct {
	From int // index of the producing vertex, smaller than the consumer's
	// Pointwise edges connect as weir.PointwiseProducers says, other edges all with all.
	Pointwise bool
}

// VertexView is one vertex.
type VertexView struct {
	Inputs   []InputView
	Subtasks []SubtaskView
	// UnionState says that an operator of it has state of which every subtask gets all
	// when it is restored. No checkpoint may then miss a subtask's part.
	UnionState bool
}

// CheckpointPlan says who takes part in a checkpoint. All lists are ordered by
// vertex and subtask.
type CheckpointPlan struct {
	// Trigger are those who start it: they are sent a trigger.
	Trigger []weir.AttemptID
	// Wait are those whose acknowledgement is needed. They are also the commit list:
	// those who are told how it ended.
	Wait []weir.AttemptID
	// Finished are those who had finished before.
	Finished []weir.AttemptID
	// FullyFinished are the vertices all of whose subtasks had.
	FullyFinished []int32
	// Union are the vertices with union state that have not fully finished.
	Union []UnionVertex
}

// UnionVertex is a vertex with union state in a plan.
type UnionVertex struct {
	Vertex   int32
	Finished int // subtasks that had finished before
	Subtasks int
}

// PlanError says why there is no plan.
type PlanError struct {
	Reason  weir.FailureReason
	Message string
}

func (e *PlanError) Error() string { return fmt.Sprintf("%s: %s", e.Reason, e.Message) }
