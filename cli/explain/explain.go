package explain

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
)

// Kind is what a checkpoint waited for.
type Kind uint8

// Kinds, in the order in which a checkpoint may meet them.
const (
	Turn         Kind = iota // the decider let others go first
	Planning                 // who takes part was found out
	ID                       // the registry gave an id
	Location                 // the location of a savepoint was made
	Coordinators             // operator coordinators gave their state
	Hooks                    // master hooks gave theirs
	Sending                  // triggers were sent
	Busy                     // a source did not take its trigger yet
	Queue                    // a barrier waited behind data
	Alignment                // a barrier was there and another was not
	Sync                     // a task stood still for its snapshot
	Async                    // a task's snapshot was written
	Tasks                    // all of a task, where statistics of subtasks are not kept
	Messages                 // between tasks and JobManager
	Missing                  // a task has not acknowledged
	Metadata                 // the metadata was written
	LinkTurn                 // links of earlier checkpoints came first
	Link                     // the registry took the link
	Ending                   // the JobManager completed it
)

var kindNames = [...]string{
	"turn", "planning", "id", "location", "coordinators", "hooks", "sending", "busy", "queue", "alignment", "sync", "async",
	"tasks", "messages", "missing", "metadata", "link turn", "link", "ending",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Wait is a part of the time that a checkpoint took.
type Wait struct {
	Kind    Kind
	Took    time.Duration
	At      Subtask // where; zero: in the JobManager
	From    Subtask // who sent the barrier that was waited for, if one was
	Channel int32   // of the barrier, in its input
	Input   int32
	Queued  int64 // bytes ahead of the barrier when the checkpoint was triggered
	Bytes   int64 // written
	Others  int   // of Missing: how many more subtasks were
}

// Subtask names one. The zero value is none.
type Subtask struct {
	Vertex string
	Index  int32
}

func (s Subtask) String() string {
	if s.Vertex == "" {
		return ""
	}
	return fmt.Sprintf("%s[%d]", s.Vertex, s.Index)
}

// Explanation is why a checkpoint took as long as it did.
type Explanation struct {
	Before []Wait // what it waited for before it was triggered
	Waits  []Wait // from the trigger on; their sum is the duration
	Advice string // one sentence
	// Whole says that there were statistics of all that happened: else the waits tell
	// less.
	Whole bool
}

// Total is the time from the first of Before on.
func (e *Explanation) Total() time.Duration { return sum(e.Before) + sum(e.Waits) }

func sum(waits []Wait) (total time.Duration) {
	for _, w := range waits {
		total += w.Took
	}
	return total
}

// Checkpoint explains one. Without the graph the way of the barriers is not known.
func Checkpoint(c *rpc.CheckpointInfo, g *jobgraph.JobGraph) Explanation {
	x := newPath(c, g)
	e := Explanation{Before: before(c), Waits: x.waits(), Whole: len(c.Steps) > 0 && len(c.Subtasks) == c.Tasks}
	e.Advice = x.advise(&e)
	return e
}

// Slowest is the index of the one that took longest among those that can be explained,
// or -1.
func Slowest(recent []rpc.CheckpointInfo) int {
	slowest := -1
	for i := range recent {
		if len(recent[i].Steps) > 0 && (slowest < 0 || recent[i].Duration > recent[slowest].Duration) {
			slowest = i
		}
	}
	return slowest
}

// before are the waits before the trigger.
func before(c *rpc.CheckpointInfo) []Wait {
	requested, known := c.Step(rpc.StepRequested)
	if !known || requested >= 0 {
		return nil
	}
	l := line{at: requested, end: 0}
	l.step(c, rpc.StepDecided, Turn)
	l.step(c, rpc.StepPlanned, Planning)
	l.until(0, Wait{Kind: ID})
	return l.waits
}

// line puts waits one after the other.
type line struct {
	at, end time.Duration
	waits   []Wait
}

// until adds what was waited for until a time, if that is later than what came before.
func (l *line) until(at time.Duration, w Wait) {
	at = min(at, l.end)
	if at <= l.at {
		return
	}
	w.Took = at - l.at
	l.at = at
	l.waits = append(l.waits, w)
}

// step adds the wait for a step of the coordinator, if it was taken.
func (l *line) step(c *rpc.CheckpointInfo, s rpc.CheckpointStep, k Kind) {
	if at, taken := c.Step(s); taken {
		l.until(at, Wait{Kind: k})
	}
}
