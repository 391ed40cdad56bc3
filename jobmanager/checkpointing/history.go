package checkpointing

import (
	"cmp"
	"slices"
	"time"

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
		h.subtasks -= h.recent[0].size()
		h.recent = slices.Delete(h.recent, 0, 1)
	}
	h.recent = append(h.recent, s)
	h.subtasks += s.size()
	for i := 0; i < len(h.recent)-1 && h.subtasks > maxRecentSubtasks; i++ {
		h.subtasks -= h.recent[i].size()
		h.recent[i].Subtasks, h.recent[i].Late = nil, nil
	}
}

// late notes an acknowledgement that came after its snapshot had failed, if the subtask
// was awaited and has not been heard of.
func (h *history) late(now time.Time, ev Acknowledged) {
	i := h.index(ev.Checkpoint)
	if i < 0 || h.recent[i].Status != Failed {
		return
	}
	s := &h.recent[i]
	at, found := slices.BinarySearchFunc(s.Subtasks, ev.Attempt, func(t SubtaskStatistics, a weir.AttemptID) int {
		return cmp.Or(cmp.Compare(t.Attempt.Vertex, a.Vertex), cmp.Compare(t.Attempt.Subtask, a.Subtask))
	})
	if !found || s.Subtasks[at].Attempt != ev.Attempt || s.Subtasks[at].Acknowledged != 0 || len(s.Late) == s.Tasks-s.Acknowledged {
		return
	}
	s.Late = append(s.Late, SubtaskStatistics{Attempt: ev.Attempt, Acknowledged: max(now.Sub(s.Triggered), 1), Metrics: ev.Metrics})
	h.subtasks++
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
	i := h.index(id)
	return i >= 0 && h.recent[i].Status == as
}

// index is where a recent snapshot is, or -1.
func (h *history) index(id weir.CheckpointID) int {
	for i := len(h.recent) - 1; i >= 0; i-- {
		if h.recent[i].ID == id {
			return i
		}
	}
	return -1
}

// size is how many subtasks it holds.
func (s *CheckpointStatistics) size() int { return len(s.Subtasks) + len(s.Late) }
