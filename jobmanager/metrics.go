package jobmanager

import (
	"time"

	"github.com/weirflow/weir"
)

// Metrics is where a JobManager's figures go. Its methods are called from several
// goroutines and must not block. Series of a job go with JobGone.
type Metrics interface {
	// TaskManagers says how many TaskManagers are registered, with their slots.
	TaskManagers(registered, slots, free int)
	// JobRunning says how many tasks of a job run, of how many.
	JobRunning(job weir.JobID, name string, running, tasks int)
	// JobRestarted counts one restart.
	JobRestarted(job weir.JobID, name string)
	// CheckpointCompleted and CheckpointFailed count one checkpoint's end.
	CheckpointCompleted(job weir.JobID, name string, duration time.Duration, bytes int64)
	CheckpointFailed(job weir.JobID, name string, reason weir.FailureReason)
	// SubtaskSnapshot tells of one subtask's part in a completed checkpoint.
	SubtaskSnapshot(job weir.JobID, name, vertex string, m weir.CheckpointMetrics)
	// JobGone ends a job's series.
	JobGone(job weir.JobID)
}

type noMetrics struct{}

func (noMetrics) TaskManagers(int, int, int)                                         {}
func (noMetrics) JobRunning(weir.JobID, string, int, int)                            {}
func (noMetrics) JobRestarted(weir.JobID, string)                                    {}
func (noMetrics) CheckpointCompleted(weir.JobID, string, time.Duration, int64)       {}
func (noMetrics) CheckpointFailed(weir.JobID, string, weir.FailureReason)            {}
func (noMetrics) SubtaskSnapshot(weir.JobID, string, string, weir.CheckpointMetrics) {}
func (noMetrics) JobGone(weir.JobID)                                                 {}
