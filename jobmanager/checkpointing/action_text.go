package checkpointing

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

func (a NeedPlan) String() string { return fmt.Sprintf("need plan for trigger %d", a.Trigger) }
func (a SnapshotCoordinators) String() string {
	return fmt.Sprintf("snapshot %d coordinators for %d", len(a.Operators), a.Checkpoint)
}
func (a ArmTimer) String() string {
	return fmt.Sprintf("arm timer %s at %s", a.Key, a.At.Format(time.RFC3339Nano))
}
func (a CancelTimer) String() string { return fmt.Sprintf("cancel timer %s", a.Key) }
func (a TakeID) String() string      { return fmt.Sprintf("take id for trigger %d", a.Trigger) }
func (a TriggerTasks) String() string {
	o := a.Barrier.Options
	alignment := o.Alignment.String()
	if o.Timeout > 0 {
		alignment += fmt.Sprintf(" for %s", o.Timeout)
	}
	return fmt.Sprintf("trigger %s %d (%s, %s) at %s", o.Kind, a.Barrier.ID, alignment, o.Location, attempts(a.Attempts))
}
func (a WriteMetadata) String() string {
	return fmt.Sprintf("write metadata of %d: %d tasks, %d finished, %d coordinators",
		a.Checkpoint, len(a.Tasks), len(a.Finished), len(a.Coordinators))
}
func (a AddLink) String() string { return fmt.Sprintf("add link %d: %s", a.Checkpoint, a.Metadata) }
func (a NotifyComplete) String() string {
	return fmt.Sprintf("notify complete %d, subsumed %d: %s", a.Permit.ID(), a.Subsumed, attempts(a.Tasks))
}
func (a NotifyAborted) String() string {
	return fmt.Sprintf("notify aborted %d, latest completed %d: %s", a.Checkpoint, a.LatestCompleted, attempts(a.Tasks))
}
func (a DiscardState) String() string {
	ids := make([]weir.AttemptID, len(a.States))
	for i := range a.States {
		ids[i] = a.States[i].Attempt
	}
	return fmt.Sprintf("discard state of %d (cleanup %d): %s", a.Checkpoint, a.Cleanup, attempts(ids))
}
func (a DeleteCheckpoint) String() string {
	what := "file"
	switch {
	case a.KeepFiles:
		what = "link"
	case a.Linked:
		what = "link and files"
	}
	return fmt.Sprintf("delete %s of %d (cleanup %d)", what, a.Checkpoint, a.Cleanup)
}
func (a CheckpointEnded) String() string { return "ended: " + a.Statistics.String() }
func (a Alarm) String() string {
	last := "without id"
	if a.Checkpoint != weir.NoCheckpoint {
		last = fmt.Sprintf("last %d", a.Checkpoint)
	}
	return fmt.Sprintf("alarm: %d failed checkpoints, %s: %s: %s", a.Failures, last, a.Reason, a.Message)
}
func (a DeleteShared) String() string {
	return fmt.Sprintf("delete shared files (cleanup %d): %s", a.Cleanup, strings.Join(a.Files, " "))
}
func (a FailJob) String() string {
	whom := "job"
	if a.Attempt != (weir.AttemptID{}) {
		whom = fmt.Sprintf("%s#%d", a.Attempt.SubtaskID(), a.Attempt.N)
	}
	return fmt.Sprintf("fail %s: %s: %s", whom, a.Reason, a.Message)
}
func (a InitializeLocation) String() string {
	return fmt.Sprintf("initialize location %s of %s %d", a.Location, a.Kind, a.Checkpoint)
}
func (a CallHooks) String() string { return fmt.Sprintf("call hooks %v for %d", a.Hooks, a.Checkpoint) }
func (LinkSettled) String() string { return "link settled" }
func (a RequestEnded) String() string {
	if a.Reason == weir.ReasonNone {
		return fmt.Sprintf("request %d completed as %d", a.Request, a.Checkpoint)
	}
	return fmt.Sprintf("request %d failed: %s: %s", a.Request, a.Reason, a.Message)
}
func (a StopActing) String() string { return "stop acting: " + a.Message }
func (a Note) String() string       { return "note: " + a.Text }

// attempts lists at most eight attempts, without their job and epoch.
func attempts(ids []weir.AttemptID) string {
	const shown = 8
	s := ""
	for i, id := range ids {
		if i == shown {
			return fmt.Sprintf("%s and %d more", s, len(ids)-shown)
		}
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%s#%d", id.SubtaskID(), id.N)
	}
	if s == "" {
		return "nobody"
	}
	return s
}
