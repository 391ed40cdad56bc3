package checkpointing

import "fmt"

func (e Restored) String() string {
	return fmt.Sprintf("restored %d completed", len(e.Completed))
}
func (TasksRunning) String() string      { return "tasks running" }
func (TasksStopped) String() string      { return "tasks stopped" }
func (JobFailover) String() string       { return "job failover" }
func (Shutdown) String() string          { return "shutdown" }
func (e AttemptFailed) String() string   { return fmt.Sprintf("attempt %s failed", e.Attempt) }
func (e AttemptFinished) String() string { return fmt.Sprintf("attempt %s finished", e.Attempt) }
func (e TimerFired) String() string      { return fmt.Sprintf("timer %s fired", e.Key) }
func (e Requested) String() string       { return fmt.Sprintf("request %d for a %s", e.Request, e.Kind) }
func (e BacklogChanged) String() string {
	return fmt.Sprintf("backlog of %.8s: %t", e.Operator, e.Backlog)
}

func (e PlanCalculated) String() string {
	if e.Plan == nil {
		return fmt.Sprintf("no plan for trigger %d: %s: %s", e.Trigger, e.Reason, e.Message)
	}
	return fmt.Sprintf("plan for trigger %d: %d to trigger, %d to wait for", e.Trigger, len(e.Plan.Trigger), len(e.Plan.Wait))
}
func (e IDTaken) String() string { return fmt.Sprintf("id %d for trigger %d", e.Checkpoint, e.Trigger) }
func (e IDFailed) String() string {
	return fmt.Sprintf("no id for trigger %d: %s: %s", e.Trigger, e.Reason, e.Message)
}
func (e CoordinatorSnapshotted) String() string {
	return fmt.Sprintf("coordinator %.8s snapshotted %d: %d bytes", e.Operator, e.Checkpoint, len(e.State))
}
func (e CoordinatorFailed) String() string {
	return fmt.Sprintf("coordinator %.8s failed %d: %s", e.Operator, e.Checkpoint, e.Message)
}
func (e TriggerFailed) String() string {
	return fmt.Sprintf("trigger of %d at %s failed: %s", e.Checkpoint, e.Attempt, e.Message)
}
func (e Acknowledged) String() string {
	return fmt.Sprintf("%s acknowledged %d", e.Attempt, e.Checkpoint)
}
func (e Declined) String() string {
	return fmt.Sprintf("%s declined %d: %s: %s", e.Attempt, e.Checkpoint, e.Reason, e.Message)
}
func (e MetadataWritten) String() string {
	return fmt.Sprintf("metadata of %d written: %s, %d bytes", e.Checkpoint, e.Metadata, e.Bytes)
}
func (e MetadataFailed) String() string {
	return fmt.Sprintf("metadata of %d failed: %s", e.Checkpoint, e.Message)
}
func (e LinkAdded) String() string { return fmt.Sprintf("link of %d added", e.Checkpoint) }
func (e LinkFailed) String() string {
	return fmt.Sprintf("link of %d failed: %s", e.Checkpoint, e.Message)
}
func (e OvertakenByOther) String() string { return "overtaken by another leader: " + e.Message }
func (e CleanupEnded) String() string     { return fmt.Sprintf("cleanup %d ended", e.Cleanup) }
func (e HookCompleted) String() string {
	return fmt.Sprintf("hook %q completed for %d", e.Hook, e.Checkpoint)
}
func (e HookFailed) String() string {
	return fmt.Sprintf("hook %q failed for %d: %s", e.Hook, e.Checkpoint, e.Message)
}
func (e StateRestored) String() string {
	return fmt.Sprintf("restored from %s %d", e.From.Kind, e.From.Checkpoint)
}
func (EndOfData) String() string { return "end of data" }
func (e IntervalChanged) String() string {
	return fmt.Sprintf("interval changed to %s", e.Interval)
}
func (e LocationInitialized) String() string {
	return fmt.Sprintf("location of %d initialized", e.Checkpoint)
}
func (e LocationFailed) String() string {
	return fmt.Sprintf("location of %d failed: %s: %s", e.Checkpoint, e.Reason, e.Message)
}
