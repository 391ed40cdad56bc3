package checkpointing

import (
	"slices"

	"github.com/weirflow/weir"
)

// countsAsFailure says whether a reason counts against the tolerable number of
// failed checkpoints (behaviour §9).
func countsAsFailure(r weir.FailureReason) bool {
	switch r {
	case weir.IOException, weir.CheckpointAsyncException, weir.CheckpointDeclined,
		weir.CheckpointExpired, weir.FinalizeCheckpointFailure:
		return true
	}
	return false
}

// isPreFlight says whether a reason is one that no task is to blame for, since none was
// asked (behaviour §9).
func isPreFlight(r weir.FailureReason) bool {
	switch r {
	case weir.PeriodicSchedulerShutdown, weir.TooManyCheckpointRequests, weir.MinimumTimeBetweenCheckpoints,
		weir.NotAllRequiredTasksRunning, weir.BlockingOutputExist, weir.IOException:
		return true
	}
	return false
}

// checkpointFailure is one failed snapshot.
type checkpointFailure struct {
	id      weir.CheckpointID // or NoCheckpoint
	kind    weir.SnapshotKind
	attempt weir.AttemptID // that reported it, or zero
	reason  weir.FailureReason
	message string
}

// maxCountedIDs is how many ids are remembered as counted. Each snapshot fails once, and
// few are pending at a time, so more are not needed.
const maxCountedIDs = 64

// failureCounter decides what a failed snapshot means for the job (behaviour §9). It
// counts those that failed since the last success, raises an alarm for each, and fails
// the job when there are more than are tolerated.
type failureCounter struct {
	tolerable   int // Unlimited: only alarms
	failures    int
	lastSuccess weir.CheckpointID
	counted     []weir.CheckpointID
}

// failed takes a failure. It returns an alarm, if the failure counts, and whether the
// job is to be failed.
func (f *failureCounter) failed(x checkpointFailure) (alarm []Action, fail *FailJob) {
	byTask := x.attempt != (weir.AttemptID{}) && !isPreFlight(x.reason)
	switch {
	case byTask && x.kind.IsSynchronous():
		return nil, &FailJob{Attempt: x.attempt, Checkpoint: x.id, Reason: x.reason, Message: x.message}
	case !byTask && x.kind.IsSavepoint():
		return nil, nil
	case !countsAsFailure(x.reason):
		return nil, nil
	case x.id != weir.NoCheckpoint && (x.id <= f.lastSuccess || slices.Contains(f.counted, x.id)):
		return nil, nil
	}
	f.failures++
	if x.id != weir.NoCheckpoint {
		if len(f.counted) == maxCountedIDs {
			f.counted = slices.Delete(f.counted, 0, 1)
		}
		f.counted = append(f.counted, x.id)
	}
	alarm = []Action{Alarm{Failures: f.failures, Checkpoint: x.id, Reason: x.reason, Message: x.message}}
	if f.tolerable == Unlimited || f.failures <= f.tolerable {
		return alarm, nil
	}
	fail = &FailJob{Checkpoint: x.id, Reason: x.reason, Message: x.message}
	if byTask {
		fail.Attempt = x.attempt
	}
	f.reset()
	return alarm, fail
}

// succeeded ends the count, unless a newer snapshot has done so already.
func (f *failureCounter) succeeded(id weir.CheckpointID) {
	if id > f.lastSuccess {
		f.lastSuccess = id
		f.reset()
	}
}

func (f *failureCounter) reset() { f.failures, f.counted = 0, nil }
