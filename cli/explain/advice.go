package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/rpc"
)

const (
	// quick is a duration that gives no cause for advice.
	quick = 100 * time.Millisecond
	// skew is how many times the median of its vertex a subtask must have to stand out.
	skew = 3
)

// advise picks the sentence that fits what took longest.
func (x *path) advise(e *Explanation) string {
	group, at := dominating(mendable(e))
	switch {
	case e.Total() == 0:
		return "There are no statistics of it: they are kept for the newest 100, in the memory of the JobManager that took them."
	case e.Total() < quick && x.c.Status != rpc.CheckpointFailed:
		return fmt.Sprintf("Nothing to mend: it took less than %v, and most of that was %s.", quick, groupText[group])
	}
	switch group {
	case Queue:
		return x.backPressure(at)
	case Async:
		return x.upload(at)
	}
	return strings.ReplaceAll(advice[group], "AT", at.String())
}

// mendable are the waits among which the longest is to be mended. The turn is one only if
// it is far longer than all others: it is as long as other checkpoints are slow, and those
// mostly are for the reason that this one is.
func mendable(e *Explanation) (waits []Wait) {
	for _, w := range append(slices.Clone(e.Before), e.Waits...) {
		if w.Kind != Turn || w.Took > 2*(e.Total()-w.Took) {
			waits = append(waits, w)
		}
	}
	return waits
}

// groups say which kinds are mended in the same way.
var groups = map[Kind]Kind{Busy: Queue, Alignment: Queue, LinkTurn: Link, ID: Link, Planning: Ending, Sending: Ending}

var groupText = map[Kind]string{
	Turn: "waiting for its turn", Location: "making its location", Coordinators: "asking coordinators", Hooks: "calling hooks",
	Queue: "the way of the barriers", Sync: "a synchronous part", Async: "writing state", Tasks: "a task", Messages: "messages", Missing: "waiting for a task",
	Metadata: "writing the metadata", Link: "the registry", Ending: "the JobManager's own",
}

// advice by group. AT stands for the subtask.
var advice = map[Kind]string{
	Turn:         "It waited for its turn: checkpoints take longer than their interval, min-pause holds them back, or old ones are still being deleted; lengthen the interval, or mend what makes the others slow.",
	Location:     "The savepoint's location was slow to be made: look at the storage of the target.",
	Coordinators: "An operator coordinator was slow to give its state: look at the source's enumerator, which should not wait for anything in Snapshot.",
	Hooks:        "A master hook was slow: look at the system that it calls.",
	Sync:         "AT stood still for its snapshot: make what its operators do in a snapshot short, spread its state over more subtasks, and see that its process has CPU time.",
	Tasks:        "Only sums are kept of its subtasks, of which AT was the last: explain a newer checkpoint, whose statistics are whole.",
	Messages:     "Acknowledgements or triggers were slow on the way: see whether the JobManager or the TaskManager is short of CPU time, and what the network does.",
	Missing:      "AT did not acknowledge: `weir backpressure` and `weir show` say whether it is busy, its TaskManager's log whether it can write.",
	Metadata:     "Writing the metadata was slow: look at the storage that the JobManager writes checkpoints to.",
	Link:         "The registry was slow: give the JobManager's --data-dir a disk of its own with a fast fsync, and see that the JobManager has CPU time.",
	Ending:       "The JobManager itself took the time: see whether it is short of CPU time, and how many jobs it leads.",
}

// dominating is the group that took longest, and where most of that was.
func dominating(waits []Wait) (group Kind, at Subtask) {
	took, longest := map[Kind]time.Duration{}, map[Kind]time.Duration{}
	where := map[Kind]Subtask{}
	for _, w := range waits {
		g := groupOf(w.Kind)
		if took[g] += w.Took; w.Took > longest[g] {
			longest[g], where[g] = w.Took, w.At
		}
	}
	for g := range Ending + 1 {
		if took[g] > took[group] {
			group = g
		}
	}
	return group, where[group]
}

func groupOf(k Kind) Kind {
	if g, ok := groups[k]; ok {
		return g
	}
	return k
}

func (x *path) backPressure(at Subtask) string {
	if x.standsOut(at, func(t *rpc.SubtaskCheckpoint) float64 { return float64(began(t)) }) {
		return fmt.Sprintf("Barriers reached %s much later than the other subtasks of its operator: its keys or its host get more work than the others' do; see `weir show`, and spread hot keys.", at)
	}
	switch {
	case x.c.Kind.IsSavepoint():
		return fmt.Sprintf("Barriers waited behind data on the way to %s, and savepoints always align: give the slow operator that `weir backpressure` names more parallelism, or queue less with taskmanager.network.memory.buffer-debloat.enabled.", at)
	case x.c.Unaligned:
		return fmt.Sprintf("Barriers may overtake here, but waited for what cannot be overtaken at %s: records that take long, an exchange that always aligns, or the time of execution.checkpointing.aligned-checkpoint-timeout.", at)
	}
	return fmt.Sprintf("Barriers waited behind data on the way to %s: let them overtake with execution.checkpointing.unaligned.enabled=true (and execution.checkpointing.aligned-checkpoint-timeout), or give the slow operator that `weir backpressure` names more parallelism.", at)
}

func (x *path) upload(at Subtask) string {
	if x.standsOut(at, func(t *rpc.SubtaskCheckpoint) float64 { return float64(t.Metrics.StateBytes) }) {
		return fmt.Sprintf("%s has much more state than the other subtasks of its operator: look for hot keys, or raise the parallelism.", at)
	}
	if x.c.Unaligned {
		return fmt.Sprintf("%s took long to write state and what was in flight: look at the storage of checkpoints, or queue less with taskmanager.network.memory.buffer-debloat.enabled.", at)
	}
	return fmt.Sprintf("%s took long to write its state: look at the storage of checkpoints and at the network to it, spread the state over more subtasks, or take checkpoints less often.", at)
}

// standsOut says whether a subtask's figure is far above the median of its vertex.
func (x *path) standsOut(at Subtask, figure func(*rpc.SubtaskCheckpoint) float64) bool {
	var all []float64
	own := 0.0
	for i := range x.c.Subtasks {
		t := &x.c.Subtasks[i]
		if subtaskOf(t).Vertex != at.Vertex || t.Acknowledged == 0 {
			continue
		}
		all = append(all, figure(t))
		if t.Attempt.Subtask == at.Index {
			own = figure(t)
		}
	}
	if len(all) < 2 {
		return false
	}
	slices.Sort(all)
	return own > skew*all[(len(all)-1)/2]
}
