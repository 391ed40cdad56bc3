package rpc

import (
	"time"
)

// CheckpointStep is a step of the coordinator on the way of a checkpoint.
type CheckpointStep uint8

// Steps, in this order.
const (
	StepRequested      CheckpointStep = iota // the timer fired, or somebody asked
	StepDecided                              // it was its turn
	StepPlanned                              // it was known who takes part
	StepTriggered                            // it had an id: durations count from here
	StepLocated                              // the location of a savepoint was there
	StepCoordinated                          // all operator coordinators had given their state
	StepHooked                               // all master hooks had
	StepTasksTriggered                       // the tasks were sent their triggers
	StepFirstAck                             // the first task acknowledged
	StepLastAck                              // the last one did
	StepWritten                              // the metadata was written
	StepLinkBegan                            // its link began to be added, after those before it
	StepLinked                               // the link was in the registry: it is complete
	StepNotified                             // the tasks were told
)

var stepNames = [...]string{
	"requested", "decided", "planned", "triggered", "located", "coordinators snapshotted", "hooks called", "tasks triggered",
	"first acknowledgement", "last acknowledgement", "metadata written", "link began", "linked", "notified",
}

func (s CheckpointStep) String() string {
	if int(s) < len(stepNames) {
		return stepNames[s]
	}
	return "unknown"
}

// StepTime is when a step was taken.
type StepTime struct {
	Step CheckpointStep
	At   time.Duration // after the trigger; negative: before
}

// Step is when a step was taken after the trigger, if it was.
func (c *CheckpointInfo) Step(step CheckpointStep) (at time.Duration, taken bool) {
	for _, s := range c.Steps {
		if s.Step == step {
			return s.At, true
		}
	}
	return 0, false
}

// VertexCheckpoint sums up the subtasks of a vertex: bytes are added, durations are the
// longest of those that acknowledged.
type VertexCheckpoint struct {
	Vertex              int32 // index in the job's graph
	Name                string
	Tasks, Acknowledged int
	Slowest             int32 // the subtask that acknowledged last; -1: none did
	// LastAck is when it did, after the trigger.
	LastAck, StartDelay, Alignment, Sync, Async time.Duration
	StateBytes, PersistedBytes, AlignedBytes    int64
}

// Quantiles sums up one figure over several checkpoints. Quantiles are nearest ranks:
// values that occurred. Of no values all are 0.
type Quantiles struct {
	Count                                  int
	Min, Max, Average, P50, P90, P99, P999 float64
}

// CheckpointSummary sums up the completed ones of those that are remembered: durations in
// seconds, sizes in bytes. Those of tasks are the longest of each checkpoint.
type CheckpointSummary struct {
	Duration, Bytes, NewBytes, AlignedBytes, PersistedBytes Quantiles
	StartDelay, Alignment, Sync, Async                      Quantiles
}

// CheckpointLatest are the newest of each sort, nil if there are none. They may be older
// than all that are remembered whole, and have no subtasks.
type CheckpointLatest struct {
	Completed *CheckpointInfo // no savepoint
	Savepoint *CheckpointInfo
	Failed    *CheckpointInfo // with an id
}
