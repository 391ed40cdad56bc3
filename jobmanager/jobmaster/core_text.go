package jobmaster

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

func (a Send) String() string {
	return fmt.Sprintf("to %.2s.%d: %s", a.To.TaskManager, a.To.Incarnation, messageText(a.Message))
}
func (a Forget) String() string { return "forget " + short(a.Attempt) }
func (a RequestSlots) String() string {
	preferred := 0
	for _, w := range a.Wants {
		if w != (weir.TaskManagerID{}) {
			preferred++
		}
	}
	return fmt.Sprintf("request %d: %d slots, %d with a preference", a.Request, len(a.Wants), preferred)
}
func (a ReturnSlots) String() string { return fmt.Sprintf("return %d slots", len(a.Slots)) }
func (ReleaseSlots) String() string  { return "release slots" }
func (a ArmTimer) String() string {
	return fmt.Sprintf("arm timer %s at %s", a.Key, a.At.UTC().Format("15:04:05.000"))
}
func (a CancelTimer) String() string { return fmt.Sprintf("cancel timer %s", a.Key) }
func (a Store) String() string       { return "store: " + a.Action.String() }
func (a RecordStop) String() string {
	if a.Failure == "" {
		return fmt.Sprintf("record stop %q with a %s in %s", a.Stop.Request, a.Stop.Kind, a.Stop.Directory)
	}
	return fmt.Sprintf("record that stop %q failed%s: %s", a.Stop.Request, gapped(a.Metadata), a.Failure)
}
func (a SnapshotEnded) String() string {
	if a.Reason == weir.ReasonNone {
		return fmt.Sprintf("answer %q: %d in %s, %d bytes", a.Request, a.Checkpoint, a.Metadata, a.Bytes)
	}
	return fmt.Sprintf("answer %q: %s: %s", a.Request, a.Reason, a.Message)
}
func (a StopEnded) String() string {
	switch {
	case a.Refused:
		return fmt.Sprintf("refuse stop %q: %s", a.Request, a.Failure)
	case a.Failure != "":
		return fmt.Sprintf("stop %q failed%s: %s", a.Request, gapped(a.Metadata), a.Failure)
	default:
		return fmt.Sprintf("stop %q ended: %d in %s", a.Request, a.Checkpoint, a.Metadata)
	}
}
func (a LoadSnapshot) String() string { return fmt.Sprintf("load snapshot %s", a.Metadata) }
func (a StartCoordinator) String() string {
	if a.Restored {
		return fmt.Sprintf("start coordinator %q from %q", a.Name, a.State)
	}
	return fmt.Sprintf("start coordinator %q, which assigns to %d", a.Name, a.Parallelism)
}
func (a StopCoordinator) String() string { return fmt.Sprintf("stop coordinator %.8s", a.Operator) }
func (a SnapshotCoordinator) String() string {
	return fmt.Sprintf("snapshot coordinator %.8s for %d", a.Operator, a.Checkpoint)
}
func (a DeliverEvent) String() string {
	return fmt.Sprintf("deliver to coordinator %.8s from subtask %d: %q", a.Operator, a.Subtask, a.Event)
}
func (a AnswerCoordinator) String() string {
	return fmt.Sprintf("answer coordinator %.8s: event %d %s", a.Operator, a.Token, orWord(a.Error, "taken"))
}
func (a RestoreHooks) String() string {
	if a.Checkpoint == weir.NoCheckpoint {
		return "restore hooks to the beginning"
	}
	return fmt.Sprintf("restore hooks to checkpoint %d", a.Checkpoint)
}
func (a CallHooks) String() string { return fmt.Sprintf("call hooks for %d", a.Checkpoint) }
func (a NotifyCoordinators) String() string {
	return fmt.Sprintf("notify coordinators: %d complete", a.Checkpoint)
}
func (a SetStatus) String() string {
	text := "status " + a.Status.String()
	if a.Restarts > 0 {
		text += fmt.Sprintf(", %d restarts", a.Restarts)
	}
	if a.Detail != "" {
		text += ": " + a.Detail
	}
	return text
}
func (a JobEnded) String() string        { return "ended " + a.Status.String() }
func (a CheckpointEnded) String() string { return "checkpoint: " + a.Statistics.String() }
func (a Alarm) String() string           { return a.Alarm.String() }
func (a TaskFailed) String() string {
	return fmt.Sprintf("task %s failed: %s", short(a.Attempt), a.Failure.Error())
}
func (a Restarting) String() string {
	return fmt.Sprintf("restart after %s: %s", a.After.Round(time.Millisecond), a.Failure.Error())
}
func (a StopActing) String() string { return "stop acting: " + a.Message }
func (a Note) String() string       { return "note: " + a.Text }

// messageText is a message as scripts and logs show it.
func messageText(m rpc.Message) string {
	switch m := m.(type) {
	case rpc.Deploy:
		return deploymentText(&m.Deployment)
	case rpc.Cancel:
		return "cancel " + short(m.Attempt)
	case rpc.TriggerCheckpoint:
		return fmt.Sprintf("trigger %d at %s", m.Barrier.ID, short(m.Attempt))
	case rpc.NotifyCheckpointComplete:
		return fmt.Sprintf("complete %d to %s", m.Checkpoint, short(m.Attempt))
	case rpc.NotifyCheckpointAborted:
		return fmt.Sprintf("aborted %d to %s", m.Checkpoint, short(m.Attempt))
	case rpc.OperatorEvent:
		return fmt.Sprintf("event %d to %s: %q", m.Seq, short(m.Attempt), m.Event)
	default:
		return fmt.Sprintf("%T", m)
	}
}

// deploymentText says what distinguishes one deployment from another.
func deploymentText(d *rpc.TaskDeployment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "deploy %s", short(d.Attempt))
	for _, g := range d.Inputs {
		fmt.Fprintf(&b, " in(")
		for i, ch := range g.Channels {
			fmt.Fprintf(&b, "%s%s/%d", gap(i), short(ch.Producer), ch.Subpartition)
		}
		b.WriteString(")")
	}
	for _, p := range d.Outputs {
		fmt.Fprintf(&b, " out%s(", flag(p.Aligns, "-aligns"))
		for i, c := range p.Consumers {
			fmt.Fprintf(&b, "%s%s", gap(i), short(c.Attempt))
		}
		b.WriteString(")")
	}
	if d.RestoredFrom != weir.NoCheckpoint {
		fmt.Fprintf(&b, " from %d:", d.RestoredFrom)
		for _, o := range d.Restore {
			fmt.Fprintf(&b, " %s", o.Name)
			for _, k := range o.Keyed {
				fmt.Fprintf(&b, "%s", k.Range)
			}
			fmt.Fprintf(&b, "+%d", len(o.Elements))
		}
	}
	for _, r := range d.Recovered {
		fmt.Fprintf(&b, " flight(gate %d %d>%d", r.Gate, r.Producer, r.Consumer)
		if r.Channel >= 0 {
			fmt.Fprintf(&b, " as %d", r.Channel)
		}
		b.WriteString(flag(r.Filter, " filter"))
		for _, h := range r.Captured {
			b.WriteString(" " + h.File)
		}
		b.WriteString(")")
	}
	b.WriteString(flag(d.Finished, " finished"))
	if len(d.Splits) > 0 {
		fmt.Fprintf(&b, " splits %q", d.Splits)
	}
	return b.String()
}

// short is an attempt within its job.
func short(id weir.AttemptID) string { return fmt.Sprintf("%s#%d", id.SubtaskID(), id.N) }

func flag(set bool, word string) string {
	if set {
		return word
	}
	return ""
}

// gapped is a text that follows another, if there is any.
func gapped(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

func gap(i int) string {
	if i == 0 {
		return ""
	}
	return " "
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}
