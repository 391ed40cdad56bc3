package checkpointing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirflow/weir"
)

// TestCoordinator runs the scripts of testdata/coordinator; those named O-… are
// cases. The script plays the core and the shell: plans are calculated at once over
// the graph; timers fire when "advance" passes them; all other answers are commands.
//
//	new [interval=D] [pause=D] [timeout=D] [retained=N] [concurrent=N] [backlog=D] [operators=N] [restored=ID,… | foreign=ID | claimed=ID]
//	    [at-least-once] [unaligned[=D]]   the barriers; D: how long they align first
//	    [tolerable=N] [hooks=N] [union=VERTEX]
//	    graph as in TestPlan
//	advance D [late]             moves the clock; late: due timers fire only at its end
//	status STATUS SUBTASK…       changes the graph
//	running, stopped, failover, shutdown, overtaken
//	failed S, finished S         an attempt ended
//	id ID, noid REASON           for the trigger under way
//	coordinator I ID, nocoordinator I ID, untriggered S ID
//	ack S ID [file[=FILE]] [channel=FILE] [bytes=N] [finished], decline S ID REASON
//	located ID, unlocated ID REASON, hook I ID, nohook I ID
//	written ID, unwritten ID, linked ID, unlinked ID
//	cleaned N, request N [KIND [nowhere]], backlog I BOOL
//	end-of-data, interval D, started-from ID
//	statistics
//
// S is a subtask such as src0, or src0#2 for another attempt of it, or other:src0
// for one of another job.
func TestCoordinator(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/coordinator", func(t *testing.T, path string) {
		var r *rig
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			if td.Cmd == "new" {
				r = newRig(t, td)
				return "ok"
			}
			return r.run(t, td)
		})
	})
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rig is a coordinator with the world that a script sees.
type rig struct {
	c      *CheckpointCoordinator
	now    time.Time
	view   []VertexView
	names  []string
	timers map[TimerKey]time.Time
	asked  TriggerID // of the last TakeID
	out    []string
}

func newRig(t *testing.T, td *datadriven.TestData) *rig {
	o := Defaults()
	duration := func(key string, into *time.Duration) bool {
		var text string
		if a, ok := argOf(td, key); !ok || len(a.Vals) == 0 || !td.MaybeScanArgs(t, key, &text) {
			return false
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		*into = d
		return true
	}
	duration("interval", &o.Interval)
	duration("pause", &o.MinPause)
	duration("timeout", &o.Timeout)
	o.BacklogIntervalSet = duration("backlog", &o.BacklogInterval)
	o.Retained = arg(t, td, "retained", o.Retained)
	o.MaxConcurrent = arg(t, td, "concurrent", 1)
	o.Unaligned = td.HasArg("unaligned")
	o.TolerableFailures = arg(t, td, "tolerable", Unlimited)
	duration("unaligned", &o.AlignedTimeout)
	if td.HasArg("at-least-once") {
		o.Mode = AtLeastOnce
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	config := Config{Job: testJob, Options: o, Rand: rand.New(rand.NewPCG(1, 2))}
	for i := range arg(t, td, "operators", 0) {
		config.Operators = append(config.Operators, operatorNamed(i))
	}
	for i := range arg(t, td, "hooks", 0) {
		config.Hooks = append(config.Hooks, fmt.Sprintf("hook%d", i))
	}
	r := &rig{c: New(config), now: epoch, timers: map[TimerKey]time.Time{}}
	r.view, r.names = parseGraph(t, td.Input)
	var union string
	if td.MaybeScanArgs(t, "union", &union) {
		r.view[slices.Index(r.names, union)].UnionState = true
	}
	var restored Restored
	for _, a := range td.CmdArgs {
		for _, v := range a.Vals {
			if n, err := strconv.Atoi(v); err == nil && (a.Key == "restored" || a.Key == "foreign" || a.Key == "claimed") {
				restored.Completed = append(restored.Completed, CompletedCheckpoint{ID: weir.CheckpointID(n), Owned: a.Key != "foreign", Foreign: a.Key != "restored"})
			}
		}
	}
	r.c.Step(r.now, restored)
	return r
}

func operatorNamed(i int) weir.OperatorID { return weir.OperatorID{byte(i + 1)} }

// step feeds the coordinator, answers what the core answers, and keeps the timers.
func (r *rig) step(ev Event) {
	for queue := []Event{ev}; len(queue) > 0; queue = queue[1:] {
		for _, a := range r.c.Step(r.now, queue[0]) {
			switch a := a.(type) {
			case NeedPlan:
				queue = append(queue, PlanFor(a.Trigger, r.view, r.c.config.Options))
				continue
			case ArmTimer:
				r.timers[a.Key] = a.At
			case CancelTimer:
				delete(r.timers, a.Key)
			case TakeID:
				r.asked = a.Trigger
			}
			r.out = append(r.out, r.render(a))
		}
	}
}

func (r *rig) render(a Action) string {
	switch a := a.(type) {
	case ArmTimer:
		return fmt.Sprintf("arm timer %s at %s", a.Key, a.At.Sub(epoch))
	case Note:
		return strings.ReplaceAll(a.String(), fmt.Sprintf("%.8s/", testJob), "")
	}
	if d, ok := a.(DiscardState); ok {
		text := d.String()
		for _, s := range d.States {
			for _, c := range s.State.Channels {
				text += " " + c.Handle.File
			}
		}
		return text
	}
	return a.String()
}

// advance moves the clock and fires what is due, in order of time.
func (r *rig) advance(d time.Duration, late bool) {
	end := r.now.Add(d)
	for {
		var next TimerKey
		found := false
		for key, at := range r.timers {
			if !at.After(end) && (!found || at.Before(r.timers[next]) || at.Equal(r.timers[next]) && key.String() < next.String()) {
				next, found = key, true
			}
		}
		if !found {
			r.now = end
			return
		}
		if r.now = r.timers[next]; late {
			r.now = end
		}
		delete(r.timers, next)
		r.out = append(r.out, fmt.Sprintf("[%s %s]", r.now.Sub(epoch), next))
		r.step(TimerFired{next})
	}
}

func (r *rig) attempt(t *testing.T, word string) weir.AttemptID {
	t.Helper()
	id := weir.AttemptID{Job: testJob, Epoch: 5, N: 1}
	if rest, other := strings.CutPrefix(word, "other:"); other {
		word, id.Job = rest, weir.JobID{1}
	}
	word, n, numbered := strings.Cut(word, "#")
	if numbered {
		v, _ := strconv.Atoi(n)
		id.N = int32(v)
	}
	name := strings.TrimRight(word, "0123456789")
	i, err := strconv.Atoi(word[len(name):])
	if id.Vertex = int32(slices.Index(r.names, name)); err != nil || id.Vertex < 0 {
		t.Fatalf("subtask %q", word)
	}
	id.Subtask = int32(i)
	return id
}

func (r *rig) run(t *testing.T, td *datadriven.TestData) string {
	r.out = nil
	word := func(i int) string { return td.CmdArgs[i].Key }
	switch td.Cmd {
	case "advance":
		d, err := time.ParseDuration(word(0))
		if err != nil {
			t.Fatal(err)
		}
		r.advance(d, td.HasArg("late"))
		r.out = append(r.out, fmt.Sprintf("[%s]", r.now.Sub(epoch)))
	case "status":
		status := slices.Index(taskStatusNames[:], word(0))
		for _, a := range td.CmdArgs[1:] {
			id := r.attempt(t, a.Key)
			r.view[id.Vertex].Subtasks[id.Subtask] = SubtaskView{id, TaskStatus(status)}
		}
	case "statistics":
		s := r.c.Statistics(r.now)
		r.out = append(r.out, fmt.Sprintf("completed %d, failed %d, pending %d", s.Completed, s.Failed, s.Pending))
		if s.Restored != nil {
			r.out = append(r.out, fmt.Sprintf("restored %d times, at %s from %s %d", s.Restores, s.Restored.At.Sub(epoch), s.Restored.Kind, s.Restored.Checkpoint))
		}
		for _, ch := range s.Recent {
			r.out = append(r.out, ch.String())
		}
	default:
		r.step(r.event(t, td))
	}
	if len(r.out) == 0 {
		return "-"
	}
	return strings.Join(r.out, "\n")
}

// event reads a command that is one event.
func (r *rig) event(t *testing.T, td *datadriven.TestData) Event {
	word := func(i int) string { return td.CmdArgs[i].Key }
	id := func(i int) weir.CheckpointID {
		n, err := strconv.Atoi(word(i))
		if err != nil {
			td.Fatalf(t, "id: %v", err)
		}
		return weir.CheckpointID(n)
	}
	switch td.Cmd {
	case "running":
		return TasksRunning{}
	case "stopped":
		return TasksStopped{}
	case "failover":
		return JobFailover{}
	case "shutdown":
		return Shutdown{}
	case "overtaken":
		return OvertakenByOther{"leader 9 wrote link 4"}
	case "failed":
		return AttemptFailed{r.attempt(t, word(0))}
	case "finished":
		return AttemptFinished{r.attempt(t, word(0))}
	case "id":
		return IDTaken{r.asked, id(0)}
	case "noid":
		return IDFailed{r.asked, reason(t, word(0)), "no answer"}
	case "coordinator":
		return CoordinatorSnapshotted{id(1), operatorNamed(int(id(0))), []byte("state")}
	case "nocoordinator":
		return CoordinatorFailed{id(1), operatorNamed(int(id(0))), "boom"}
	case "untriggered":
		return TriggerFailed{id(1), r.attempt(t, word(0)), "session closed"}
	case "ack":
		ev := Acknowledged{Attempt: r.attempt(t, word(0)), Checkpoint: id(1)}
		ev.Metrics.StateBytes = int64(arg(t, td, "bytes", 10))
		if file, ok := argOf(td, "file"); ok && len(file.Vals) > 0 {
			ev.State = stateIn(file.Vals[0])
		} else if ok {
			ev.State = stateIn(fmt.Sprintf("chk-%d/%s", ev.Checkpoint, word(0)))
		}
		ev.State.Finished = td.HasArg("finished")
		var channel string
		if td.MaybeScanArgs(t, "channel", &channel) {
			ev.State.Channels = channelsIn(channel)
			ev.Metrics.PersistedBytes, ev.Metrics.Unaligned = 4, true
		}
		return ev
	case "decline":
		return Declined{r.attempt(t, word(0)), id(1), reason(t, word(2)), "says the task"}
	}
	return r.answer(t, td, id)
}

// answer reads the commands that answer for storage and for people.
func (r *rig) answer(t *testing.T, td *datadriven.TestData, id func(int) weir.CheckpointID) Event {
	switch td.Cmd {
	case "written":
		return MetadataWritten{id(0), fmt.Sprintf("job/chk-%d/_metadata", id(0)), 1000}
	case "unwritten":
		return MetadataFailed{id(0), "disk full"}
	case "linked":
		return LinkAdded{id(0), permit(id(0))}
	case "unlinked":
		return LinkFailed{id(0), "too large"}
	case "cleaned":
		return CleanupEnded{CleanupID(id(0))}
	case "request":
		return r.request(t, td, RequestID(id(0)))
	case "backlog":
		return BacklogChanged{operatorNamed(int(id(0))), td.CmdArgs[1].Key == "true"}
	case "hook":
		return HookCompleted{id(1), "hook" + td.CmdArgs[0].Key, []byte("state")}
	case "nohook":
		return HookFailed{id(1), "hook" + td.CmdArgs[0].Key, "boom"}
	case "located":
		return LocationInitialized{id(0)}
	case "unlocated":
		return LocationFailed{id(0), reason(t, td.CmdArgs[1].Key), "permission denied"}
	case "end-of-data":
		return EndOfData{}
	case "started-from":
		return StateRestored{RestoredSnapshot{Checkpoint: id(0)}}
	case "interval":
		d, err := time.ParseDuration(td.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		return IntervalChanged{d}
	}
	td.Fatalf(t, "unknown command %s", td.Cmd)
	return nil
}

// request reads the kind of a snapshot; a savepoint has a location.
func (r *rig) request(t *testing.T, td *datadriven.TestData, id RequestID) Event {
	t.Helper()
	ev := Requested{Request: id}
	for kind := weir.Checkpoint; kind <= weir.TerminateSavepoint; kind++ {
		if td.HasArg(kind.String()) {
			ev.Kind = kind
		}
	}
	if ev.Kind.IsSavepoint() && !td.HasArg("nowhere") {
		ev.Location = fmt.Sprintf("sp-%d", id)
	}
	return ev
}

type permit weir.CheckpointID

func (p permit) ID() weir.CheckpointID { return weir.CheckpointID(p) }

func reason(t *testing.T, name string) weir.FailureReason {
	t.Helper()
	r, ok := weir.ParseFailureReason(name)
	if !ok {
		t.Fatalf("reason %q", name)
	}
	return r
}

func channelsIn(file string) []weir.ChannelStateHandle {
	return []weir.ChannelStateHandle{{Handle: weir.StateHandle{File: file, Length: 10}}}
}

func stateIn(file string) weir.TaskStateSnapshot {
	return weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{{
		Keyed: []weir.KeyedStateHandle{{Handle: weir.StateHandle{File: file, Length: 10}}},
	}}}
}

func argOf(td *datadriven.TestData, key string) (datadriven.CmdArg, bool) {
	i := slices.IndexFunc(td.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == key })
	if i < 0 {
		return datadriven.CmdArg{}, false
	}
	return td.CmdArgs[i], true
}
