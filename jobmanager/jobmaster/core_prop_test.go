package jobmaster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// TestAnyLife drives a core through random lives: everything that a job depends on
// answers in any order, fails, or is lost. It is checked against the world's own
// record that
//
//   - no two attempts of a subtask run at a time, and no number is used twice;
//   - every run starts from the newest complete checkpoint;
//   - a checkpoint is notified only after its link;
//   - the job ends once, and then nothing runs;
//   - once the faults stop, the job runs again or has ended.
func TestAnyLife(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newPropWorld(t)
		w.step(Start{})
		for range rapid.IntRange(10, 150).Draw(t, "steps") {
			w.anything()
		}
		w.heal()
	})
}

// propWorld is everything around a core, and the record of what is true.
type propWorld struct {
	t        *rapid.T
	core     *Core
	now      time.Time
	timers   map[TimerKey]time.Time
	pending  []func() // answers that are due, in no order
	live     map[weir.SubtaskID]weir.AttemptID
	at       map[weir.AttemptID]execgraph.Location
	used     map[weir.AttemptID]bool
	linked   map[weir.CheckpointID]bool
	newest   weir.CheckpointID
	nextID   weir.CheckpointID
	tms      map[byte]weir.Incarnation // that live
	asked    *RequestSlots             // not answered yet
	slot     int
	ended    int
	canceled bool
}

func newPropWorld(t *rapid.T) *propWorld {
	settings, err := joboption.Parse(map[string]string{"execution.checkpointing.interval": "10s", "execution.checkpointing.timeout": "15s"})
	if err != nil {
		t.Fatal(err)
	}
	spec := &Spec{
		Job: testJob, Name: "job", Epoch: 3, Graph: testGraph(rapid.IntRange(1, 2).Draw(t, "src"), rapid.IntRange(1, 3).Draw(t, "count"), rapid.IntRange(0, 1).Draw(t, "alone")),
		Settings: settings, Directory: snapshotmeta.JobDir(testJob), Rand: rand.New(rand.NewPCG(1, 2)),
	}
	return &propWorld{
		t: t, core: NewCore(spec), now: epoch, timers: map[TimerKey]time.Time{},
		live: map[weir.SubtaskID]weir.AttemptID{}, at: map[weir.AttemptID]execgraph.Location{}, used: map[weir.AttemptID]bool{},
		linked: map[weir.CheckpointID]bool{}, tms: map[byte]weir.Incarnation{1: 1, 2: 1},
	}
}

func (w *propWorld) step(ev Event) {
	for _, a := range w.core.Step(w.now, ev) {
		w.act(a)
	}
	if w.ended > 0 && len(w.live) > 0 {
		w.t.Fatalf("the job has ended, and %v run", w.live)
	}
}

func (w *propWorld) later(fn func()) { w.pending = append(w.pending, fn) }

func (w *propWorld) act(action Action) {
	switch a := action.(type) {
	case Send:
		w.sent(a)
	case RequestSlots:
		w.asked = &a
	case ArmTimer:
		w.timers[a.Key] = a.At
	case CancelTimer:
		delete(w.timers, a.Key)
	case LoadSnapshot:
		want := fmt.Sprintf("chk-%d", w.newest)
		if w.newest == 0 || a.Metadata != want {
			w.t.Fatalf("run %d loads %s, the newest is %s", a.Run, a.Metadata, want)
		}
		id := w.newest
		w.later(func() {
			s := snapshotmeta.New(snapshotmeta.Header{Job: testJob, Checkpoint: id})
			w.step(SnapshotLoaded{Run: a.Run, Snapshot: s})
		})
	case StartCoordinator:
		w.later(func() { w.step(CoordinatorStarted{Run: a.Run, Operator: a.Operator}) })
	case SnapshotCoordinator:
		run := w.core.coordinators[slices.IndexFunc(w.core.sources, func(s source) bool { return s.id == a.Operator })]
		w.later(func() {
			w.step(Coordination{Run: run, Operator: a.Operator, Event: opcoord.SnapshotTaken{Checkpoint: a.Checkpoint}})
		})
	case Store:
		w.store(a.Action)
	case JobEnded:
		if w.ended++; w.ended > 1 {
			w.t.Fatal("the job ended twice")
		}
		if a.Status == rpc.JobCanceled && !w.canceled {
			w.t.Fatal("canceled, but nobody asked for it")
		}
	}
}

func (w *propWorld) sent(a Send) {
	switch m := a.Message.(type) {
	case rpc.Deploy:
		d := m.Deployment
		if w.used[d.Attempt] {
			w.t.Fatalf("%s is deployed twice", d.Attempt)
		}
		if old, ok := w.live[d.Attempt.SubtaskID()]; ok {
			w.t.Fatalf("%s is deployed, and %s runs", d.Attempt, old)
		}
		if w.ended > 0 || d.RestoredFrom != w.newest {
			w.t.Fatalf("%s starts from %d, the newest is %d; ended %d", d.Attempt, d.RestoredFrom, w.newest, w.ended)
		}
		w.used[d.Attempt] = true
		if w.tms[a.To.TaskManager[0]] != a.To.Incarnation {
			return // it never arrives
		}
		w.live[d.Attempt.SubtaskID()], w.at[d.Attempt] = d.Attempt, a.To
		w.later(func() { w.report(d.Attempt, rpc.TaskRunning) })
	case rpc.Cancel:
		w.later(func() { w.final(m.Attempt, rpc.TaskCanceled, nil) })
	case rpc.TriggerCheckpoint:
		for x := range w.core.graph.Executions() {
			ack := checkpointing.Acknowledged{Attempt: x.ID, Checkpoint: m.Barrier.ID}
			w.later(func() { w.step(Checkpointing{ack}) })
		}
	case rpc.NotifyCheckpointComplete:
		if !w.linked[m.Checkpoint] {
			w.t.Fatalf("%d is notified, and is no link", m.Checkpoint)
		}
	}
}

func (w *propWorld) store(action checkpointing.Action) {
	pass := func(ev checkpointing.Event) func() { return func() { w.step(Checkpointing{ev}) } }
	switch a := action.(type) {
	case checkpointing.TakeID:
		w.nextID++
		w.later(pass(checkpointing.IDTaken{Trigger: a.Trigger, Checkpoint: w.nextID}))
	case checkpointing.WriteMetadata:
		if rapid.IntRange(0, 4).Draw(w.t, "metadata") == 0 {
			w.later(pass(checkpointing.MetadataFailed{Checkpoint: a.Checkpoint, Message: "disk full"}))
			return
		}
		w.later(pass(checkpointing.MetadataWritten{Checkpoint: a.Checkpoint, Metadata: fmt.Sprintf("chk-%d", a.Checkpoint)}))
	case checkpointing.AddLink:
		if a.Checkpoint <= w.newest {
			w.t.Fatalf("link %d after %d", a.Checkpoint, w.newest)
		}
		w.linked[a.Checkpoint], w.newest = true, a.Checkpoint
		w.later(pass(checkpointing.LinkAdded{Checkpoint: a.Checkpoint, Permit: permit(a.Checkpoint)}))
	case checkpointing.DeleteCheckpoint:
		if a.Checkpoint == w.newest {
			w.t.Fatalf("the newest checkpoint %d is deleted", a.Checkpoint)
		}
		w.later(pass(checkpointing.CleanupEnded{Cleanup: a.Cleanup}))
	case checkpointing.DiscardState:
		w.later(pass(checkpointing.CleanupEnded{Cleanup: a.Cleanup}))
	}
}

func (w *propWorld) report(id weir.AttemptID, s rpc.TaskState) {
	if w.live[id.SubtaskID()] == id {
		w.step(TaskState{Attempt: id, State: s})
	}
}

// final ends an attempt, if it runs.
func (w *propWorld) final(id weir.AttemptID, s rpc.TaskState, f *weir.Failure) {
	if w.live[id.SubtaskID()] == id {
		delete(w.live, id.SubtaskID())
		w.step(TaskState{Attempt: id, State: s, Failure: f})
	}
}

// anything lets one thing happen.
func (w *propWorld) anything() {
	switch k := rapid.IntRange(0, 19).Draw(w.t, "what"); {
	case k < 10:
		w.answer()
	case k < 13:
		w.grant()
	case k < 16:
		w.advance(time.Duration(rapid.IntRange(1, 12).Draw(w.t, "seconds")) * time.Second)
	case k == 16:
		if id, ok := w.anyTask(); ok {
			f := &weir.Failure{Message: "boom"}
			if cause, ok := w.anyTask(); ok && rapid.Bool().Draw(w.t, "consequence") {
				f.Cause = cause
			}
			w.final(id, rpc.TaskFailed, f)
		}
	case k == 17:
		w.lose(byte(rapid.IntRange(1, 2).Draw(w.t, "tm")))
	case k == 18:
		if id, ok := w.anyTask(); ok && rapid.IntRange(0, 3).Draw(w.t, "finish") == 0 {
			w.final(id, rpc.TaskFinished, nil)
		}
	case k == 19:
		if rapid.IntRange(0, 9).Draw(w.t, "cancel") == 0 {
			w.canceled = true
			w.step(CancelRequested{})
		}
	}
}

func (w *propWorld) anyTask() (weir.AttemptID, bool) {
	ids := slices.SortedFunc(maps.Values(w.live), func(a, b weir.AttemptID) int { return int(a.Vertex*10+a.Subtask) - int(b.Vertex*10+b.Subtask) })
	if len(ids) == 0 {
		return weir.AttemptID{}, false
	}
	return rapid.SampledFrom(ids).Draw(w.t, "task"), true
}

func (w *propWorld) answer() {
	if len(w.pending) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.pending)-1).Draw(w.t, "answer")
	fn := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	fn()
}

func (w *propWorld) grant() {
	if w.asked == nil {
		return
	}
	e := SlotsGranted{Request: w.asked.Request}
	for range w.asked.Wants {
		w.slot++
		tm := byte(1 + w.slot%2)
		e.Slots = append(e.Slots, Slot{Location: execgraph.Location{TaskManager: weir.TaskManagerID{tm}, Incarnation: w.tms[tm], Slot: w.slot}})
	}
	w.asked = nil
	w.step(e)
}

// lose ends a TaskManager with its tasks; another process takes its place.
func (w *propWorld) lose(tm byte) {
	old := w.tms[tm]
	w.tms[tm]++
	for id, a := range w.live {
		if w.at[a].TaskManager[0] == tm && w.at[a].Incarnation == old {
			delete(w.live, id)
		}
	}
	w.step(TaskManagerLost{TaskManager: weir.TaskManagerID{tm}, Incarnation: old, Reason: "killed"})
}

func (w *propWorld) advance(by time.Duration) {
	w.now = w.now.Add(by)
	keys := slices.SortedFunc(maps.Keys(w.timers), func(a, b TimerKey) int {
		return w.timers[a].Compare(w.timers[b])*1000 + int(a.Kind) - int(b.Kind)
	})
	for _, k := range keys {
		if at, ok := w.timers[k]; ok && !at.After(w.now) {
			delete(w.timers, k)
			w.step(TimerFired{Key: k})
		}
	}
}

// heal answers everything and lets time pass, without faults: the job runs or ends.
func (w *propWorld) heal() {
	for range 2000 {
		switch {
		case w.ended > 0:
			return
		case len(w.pending) > 0:
			fn := w.pending[0]
			w.pending = w.pending[1:]
			fn()
		case w.asked != nil:
			w.grant()
		case w.core.status == rpc.JobRunning:
			return
		default:
			w.advance(time.Second)
		}
	}
	w.t.Fatalf("the job is %s (%s) and stays so; phase %d, live %v", w.core.status, w.core.detail, w.core.phase, w.live)
}
