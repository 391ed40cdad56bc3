package checkpointing

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir"
)

// PlanFor answers NeedPlan with an event.
func PlanFor(trigger TriggerID, vertices []VertexView, o Options) PlanCalculated {
	plan, err := CalculatePlan(vertices, o)
	var why *PlanError
	if errors.As(err, &why) {
		return PlanCalculated{Trigger: trigger, Reason: why.Reason, Message: why.Message}
	}
	return PlanCalculated{Trigger: trigger, Plan: plan}
}

// CalculatePlan says who takes part in a checkpoint of these vertices (behaviour
// §4), which are in topological order. An error is a *PlanError.
func CalculatePlan(vertices []VertexView, o Options) (*CheckpointPlan, error) {
	plan := &CheckpointPlan{}
	running := make([]int, len(vertices)) // subtasks of each vertex that have not finished
	awaited := 0
	for v := range vertices {
		for i, task := range vertices[v].Subtasks {
			if err := mayTakePart(v, i, task.Status, o.AfterTasksFinish); err != nil {
				return nil, err
			}
			if task.Status != TaskFinished {
				running[v]++
			}
		}
		awaited += running[v]
	}
	plan.Wait = make([]weir.AttemptID, 0, awaited)
	for v := range vertices {
		if running[v] == 0 {
			plan.FullyFinished = append(plan.FullyFinished, int32(v))
		} else if n := len(vertices[v].Subtasks); vertices[v].UnionState {
			plan.Union = append(plan.Union, UnionVertex{Vertex: int32(v), Finished: n - running[v], Subtasks: n})
		}
		for i, task := range vertices[v].Subtasks {
			if task.Status == TaskFinished {
				plan.Finished = append(plan.Finished, task.Attempt)
				continue
			}
			plan.Wait = append(plan.Wait, task.Attempt)
			if hasRunningPredecessor(vertices, running, v, i) {
				continue
			}
			if task.Status == TaskWaiting {
				return nil, notRunning(v, i, task.Status)
			}
			plan.Trigger = append(plan.Trigger, task.Attempt)
		}
	}
	if len(plan.Wait) == 0 {
		return nil, &PlanError{weir.NotAllRequiredTasksRunning, "all tasks have finished"}
	}
	return plan, nil
}

func mayTakePart(vertex, subtask int, s TaskStatus, afterTasksFinish bool) error {
	if s == TaskMissing || s == TaskEnding || s == TaskFinished && !afterTasksFinish {
		return notRunning(vertex, subtask, s)
	}
	return nil
}

func notRunning(vertex, subtask int, s TaskStatus) error {
	id := weir.SubtaskID{Vertex: int32(vertex), Subtask: int32(subtask)}
	return &PlanError{weir.NotAllRequiredTasksRunning, fmt.Sprintf("subtask %s is %s", id, s)}
}

// hasRunningPredecessor says whether a barrier will reach the subtask through one of
// its inputs.
func hasRunningPredecessor(vertices []VertexView, running []int, v, subtask int) bool {
	for _, in := range vertices[v].Inputs {
		if !in.Pointwise {
			if running[in.From] > 0 {
				return true
			}
			continue
		}
		producers := vertices[in.From].Subtasks
		if running[in.From] == len(producers) {
			return true // the shortcut of §4.4, which also keeps the common case cheap
		}
		first, last := weir.PointwiseProducers(len(producers), len(vertices[v].Subtasks), subtask)
		for p := first; p < last; p++ {
			if producers[p].Status != TaskFinished {
				return true
			}
		}
	}
	return false
}
