package checkpointing

import (
	"slices"

	"github.com/weirflow/weir"
)

const (
	maxRecentCheckpoints = 100
	// maxRecentSubtasks bounds those of all recent checkpoints, besides the newest:
	// about 14 MB a job. Up to 1000 subtasks have all of theirs.
	maxRecentSubtasks = 100_000
)

// history keeps the statistics of ended snapshots.
type history struct {
	completed, failed, restores int64
	lastRestored                *RestoredSnapshot

	latestCompleted, latestSavepoint, latestFailed *CheckpointStatistics

	recent   []CheckpointStatistics // oldest first
	subtasks int                    // of all recent
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
	s.Vertices = sumUp(s.Subtasks)
	h.remember(s)
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

// remember keeps the newest of each sort, without its subtasks.
func (h *history) remember(s CheckpointStatistics) {
	s.Subtasks = nil
	switch {
	case s.Status == Failed:
		h.latestFailed = &s
	case s.Kind.IsSavepoint():
		h.latestSavepoint = &s
	default:
		h.latestCompleted = &s
	}
}

func (h *history) restored(from RestoredSnapshot) {
	h.restores++
	h.lastRestored = &from
}

// statistics is a copy without the list.
func (h *history) statistics() Statistics {
	return Statistics{
		Completed: h.completed, Failed: h.failed, Restores: h.restores, Restored: h.lastRestored,
		LatestCompleted: h.latestCompleted, LatestSavepoint: h.latestSavepoint, LatestFailed: h.latestFailed,
	}
}

// isComplete says whether a recent snapshot is known to be complete.
func (h *history) isComplete(id weir.CheckpointID) bool { return h.ended(id, Completed) }

// hasFailed says whether a recent snapshot is known to have failed.
func (h *history) hasFailed(id weir.CheckpointID) bool { return h.ended(id, Failed) }

func (h *history) ended(id weir.CheckpointID, as CheckpointStatus) bool {
	for i := len(h.recent) - 1; i >= 0; i-- {
		if h.recent[i].ID == id {
			return h.recent[i].Status == as
		}
	}
	return false
}
