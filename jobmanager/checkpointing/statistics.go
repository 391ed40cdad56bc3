package checkpointing

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// CheckpointStatus is where a checkpoint stands.
type CheckpointStatus uint8

// Checkpoint statuses.
const (
	InProgress CheckpointStatus = iota
	Completed
	Failed
)

func (s CheckpointStatus) String() string {
	return [...]string{"in progress", "completed", "failed"}[min(int(s), 2)]
}

// CheckpointStatistics is what is told of one checkpoint.
type CheckpointStatistics struct {
	ID             weir.CheckpointID // NoCheckpoint: it failed before it had one
	Kind           weir.SnapshotKind
	Status         CheckpointStatus
	Triggered      time.Time
	Duration       time.Duration // from the trigger to the link, or to the abort, or so far
	Bytes          int64         // of the snapshot when completed, else what was acknowledged so far
	PersistedBytes int64         // in-flight bytes captured
	Unaligned      bool          // a subtask's snapshot did not wait for all barriers
	Metadata       string        // blob name, when completed
	Reason         weir.FailureReason
	Message        string
	Tasks          int // awaited
	Acknowledged   int
	// Subtasks are those awaited, by vertex and subtask. They are dropped from all
	// but the newest checkpoints of a large job.
	Subtasks []SubtaskStatistics
}

// SubtaskStatistics is one subtask's part.
type SubtaskStatistics struct {
	Attempt      weir.AttemptID
	Acknowledged time.Duration // after the trigger; 0: not
	Metrics      weir.CheckpointMetrics
}

// String is the one line that a log has of a checkpoint.
func (s CheckpointStatistics) String() string {
	if s.ID == weir.NoCheckpoint {
		return fmt.Sprintf("%s not triggered: %s: %s", s.Kind, s.Reason, s.Message)
	}
	text := fmt.Sprintf("%s %d %s after %s, %d of %d tasks, %d bytes",
		s.Kind, s.ID, s.Status, s.Duration, s.Acknowledged, s.Tasks, s.Bytes)
	if s.Unaligned {
		text = fmt.Sprintf("unaligned %s, %d of them in flight", text, s.PersistedBytes)
	}
	if s.Reason != weir.ReasonNone {
		text += fmt.Sprintf(": %s: %s", s.Reason, s.Message)
	}
	return text
}

// Statistics are a job's counts since its start (or since this leader's), and its
// recent checkpoints.
type Statistics struct {
	Completed int64
	Failed    int64 // those that failed before they had an id included
	Pending   int64
	Restored  weir.CheckpointID
	Recent    []CheckpointStatistics // newest first
}

const (
	maxRecentCheckpoints = 32
	maxRecentSubtasks    = 64_000 // of all recent checkpoints, besides the newest
)

// history keeps the statistics of ended checkpoints.
type history struct {
	completed, failed int64
	restored          weir.CheckpointID
	recent            []CheckpointStatistics // oldest first
	subtasks          int                    // of all recent
}

// add takes an ended checkpoint. One without an id is only counted.
func (h *history) add(s CheckpointStatistics) {
	if s.Status == Completed {
		h.completed++
	} else {
		h.failed++
	}
	if s.ID == weir.NoCheckpoint {
		return
	}
	if len(h.recent) == maxRecentCheckpoints {
		h.subtasks -= len(h.recent[0].Subtasks)
		h.recent = slices.Delete(h.recent, 0, 1)
	}
	h.recent = append(h.recent, s)
	h.subtasks += len(s.Subtasks)
	for i := 0; i < len(h.recent)-1 && h.subtasks > maxRecentSubtasks; i++ {
		h.subtasks -= len(h.recent[i].Subtasks)
		h.recent[i].Subtasks = nil
	}
}
