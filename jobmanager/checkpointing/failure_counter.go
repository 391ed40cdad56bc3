package checkpointing

import "github.com/weirflow/weir"

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

// failureCounter counts checkpoints that failed since the last success. As long as
// any number is tolerated it only raises alarms (DECISIONS 15).
type failureCounter struct{ failures int }

// failed counts a checkpoint; each is reported once.
func (f *failureCounter) failed(id weir.CheckpointID, reason weir.FailureReason, message string) []Action {
	if !countsAsFailure(reason) {
		return nil
	}
	f.failures++
	return []Action{Alarm{Failures: f.failures, Checkpoint: id, Reason: reason, Message: message}}
}

func (f *failureCounter) succeeded() { f.failures = 0 }
