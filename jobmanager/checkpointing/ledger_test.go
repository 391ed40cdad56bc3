package checkpointing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// ledger holds what a coordinator says against what it promises: every id ends once,
// nothing completes that was not acknowledged by all, every file is owned or
// discarded once. It also keeps the answers that are due.
type ledger struct {
	t    fataler
	c    *CheckpointCoordinator
	now  time.Time
	view []VertexView

	due      []Event                                      // answers to actions, in order
	timers   map[TimerKey]time.Time                       // armed
	acked    map[weir.CheckpointID][]weir.AttemptID       // accepted by message, while pending
	awaited  map[weir.CheckpointID][]weir.AttemptID       // by the plan
	ended    map[weir.CheckpointID]CheckpointStatus       //
	notified map[weir.CheckpointID]bool                   // of either end
	linked   map[weir.CheckpointID]bool                   // by the world
	written  map[weir.CheckpointID][]string               // files in the metadata
	files    map[string]string                            // sent, owned, discarded, left
	kinds    map[weir.CheckpointID]weir.SnapshotKind      // of savepoints
	located  map[weir.CheckpointID]bool                   // savepoints whose location was made
	shared   map[string]weir.CheckpointID                 // files of in-flight data that are there, or come again
	plan     *CheckpointPlan                              // of the trigger under way
	linking  int                                          // links being added
	id       weir.CheckpointID                            // the last taken
	fail     func(what string, id weir.CheckpointID) bool // does storage fail?
}

type fataler interface {
	Fatalf(format string, args ...any)
}

func newLedger(t fataler, o Options, operators int, view []VertexView) *ledger {
	config := Config{Job: testJob, Options: o, Rand: newRand()}
	for i := range operators {
		config.Operators = append(config.Operators, operatorNamed(i))
	}
	return &ledger{
		t: t, c: New(config), now: epoch, view: view, timers: map[TimerKey]time.Time{},
		acked: map[weir.CheckpointID][]weir.AttemptID{}, awaited: map[weir.CheckpointID][]weir.AttemptID{},
		ended: map[weir.CheckpointID]CheckpointStatus{}, notified: map[weir.CheckpointID]bool{},
		linked: map[weir.CheckpointID]bool{}, written: map[weir.CheckpointID][]string{}, files: map[string]string{},
		shared: map[string]weir.CheckpointID{}, kinds: map[weir.CheckpointID]weir.SnapshotKind{}, located: map[weir.CheckpointID]bool{},
		fail: func(string, weir.CheckpointID) bool { return false },
	}
}

// step feeds the coordinator and books what it says.
func (l *ledger) step(ev Event) {
	switch ev := ev.(type) {
	case IDTaken:
		l.id = ev.Checkpoint
	case Acknowledged:
		l.book(ev)
	case LinkAdded:
		l.linking--
		l.linked[ev.Checkpoint] = true
	case LinkFailed:
		l.linking--
	case LocationInitialized:
		l.located[ev.Checkpoint] = true
	case MetadataWritten:
		l.files[ev.Metadata] = "sent"
		l.written[ev.Checkpoint] = append(l.written[ev.Checkpoint], ev.Metadata)
	}
	for _, a := range l.c.Step(l.now, ev) {
		l.act(ev, a)
	}
}

// book predicts what becomes of an acknowledgement's file.
func (l *ledger) book(ev Acknowledged) {
	for _, f := range filesOf(ev.State) {
		l.files[f] = "sent"
		if status, over := l.ended[ev.Checkpoint]; over && (status == Completed || slices.Contains(l.acked[ev.Checkpoint], ev.Attempt)) {
			// Nobody sends this twice. It is left alone while the checkpoint is retained,
			// or its metadata being written, and discarded after that.
			l.files[f] = "repeated"
		} else if slices.Contains(l.acked[ev.Checkpoint], ev.Attempt) {
			l.files[f] = "left"
		}
	}
	status, over := l.ended[ev.Checkpoint]
	for _, c := range ev.State.Channels {
		// What comes again, or for a checkpoint that is complete, is no new file.
		if status != Completed && !slices.Contains(l.acked[ev.Checkpoint], ev.Attempt) {
			l.shared[c.Handle.File] = ev.Checkpoint
		}
	}
	if !over && slices.Contains(l.awaited[ev.Checkpoint], ev.Attempt) && !slices.Contains(l.acked[ev.Checkpoint], ev.Attempt) {
		l.acked[ev.Checkpoint] = append(l.acked[ev.Checkpoint], ev.Attempt)
	}
}

func (l *ledger) act(ev Event, a Action) {
	switch a := a.(type) {
	case NeedPlan:
		p := PlanFor(a.Trigger, l.view, l.c.config.Options)
		l.plan = p.Plan
		l.step(p)
	case TakeID:
		l.due = append(l.due, IDTaken{a.Trigger, l.id + 1})
	case ArmTimer:
		l.timers[a.Key] = a.At
		if a.Key.Kind == ExpiryTimer { // the checkpoint exists: its trigger was not void
			l.awaited[a.Key.Checkpoint] = l.plan.Wait
		}
	case CancelTimer:
		if _, armed := l.timers[a.Key]; !armed {
			l.t.Fatalf("%s after %s: not armed", a, ev)
		}
		delete(l.timers, a.Key)
	case InitializeLocation:
		l.kinds[a.Checkpoint] = a.Kind
		if l.fail("location", a.Checkpoint) {
			l.due = append(l.due, LocationFailed{a.Checkpoint, weir.IOException, "full"})
			return
		}
		l.due = append(l.due, LocationInitialized{a.Checkpoint})
	case CallHooks:
		for _, h := range a.Hooks {
			l.due = append(l.due, HookCompleted{a.Checkpoint, h, nil})
		}
	case SnapshotCoordinators:
		for _, op := range a.Operators {
			l.due = append(l.due, CoordinatorSnapshotted{a.Checkpoint, op, nil})
		}
	case WriteMetadata:
		l.writeMetadata(ev, a)
	case AddLink:
		if k := l.kinds[a.Checkpoint]; k.IsSavepoint() && !k.IsSynchronous() {
			l.t.Fatalf("%s after %s: of a %s", a, ev, k)
		}
		if l.linking++; l.linking > 1 {
			l.t.Fatalf("%s after %s: another link is being added", a, ev)
		}
		if l.fail("link", a.Checkpoint) {
			l.due = append(l.due, LinkFailed{a.Checkpoint, "full"})
			return
		}
		l.due = append(l.due, LinkAdded{a.Checkpoint, permit(a.Checkpoint)})
	case NotifyComplete:
		l.notify(ev, a, a.Permit.ID(), Completed)
	case NotifyAborted:
		l.notify(ev, a, a.Checkpoint, Failed)
	case DiscardState:
		if a.Location != "" {
			delete(l.located, a.Checkpoint)
		}
		for _, s := range a.States {
			for _, f := range filesOf(s.State) {
				l.discard(ev, a, f)
			}
			for _, c := range s.State.Channels {
				l.discardShared(ev, a, c.Handle.File)
			}
		}
		l.due = append(l.due, CleanupEnded{a.Cleanup})
	case DeleteCheckpoint:
		if a.Linked != l.linked[a.Checkpoint] {
			l.t.Fatalf("%s after %s: linked is %t", a, ev, l.linked[a.Checkpoint])
		}
		delete(l.linked, a.Checkpoint)
		if a.KeepFiles {
			if !l.kinds[a.Checkpoint].IsSynchronous() {
				l.t.Fatalf("%s after %s", a, ev)
			}
			l.due = append(l.due, CleanupEnded{a.Cleanup})
			return
		}
		if l.kinds[a.Checkpoint].IsSavepoint() && l.ended[a.Checkpoint] == Completed {
			l.t.Fatalf("%s after %s: a complete savepoint", a, ev)
		}
		delete(l.located, a.Checkpoint)
		for _, f := range l.written[a.Checkpoint] {
			if a.Linked {
				l.files[f] = "sent"
			}
			l.discard(ev, a, f)
		}
		for f, id := range l.shared { // they lie in the checkpoint's directory
			if id == a.Checkpoint {
				delete(l.shared, f)
			}
		}
		l.due = append(l.due, CleanupEnded{a.Cleanup})
	case CheckpointEnded:
		l.end(ev, a)
	}
}

func (l *ledger) writeMetadata(ev Event, a WriteMetadata) {
	if len(l.acked[a.Checkpoint]) != len(l.awaited[a.Checkpoint]) || len(a.Tasks) != len(l.awaited[a.Checkpoint]) {
		l.t.Fatalf("%s after %s: %d of %d acknowledged", a, ev, len(l.acked[a.Checkpoint]), len(l.awaited[a.Checkpoint]))
	}
	for _, s := range a.Tasks {
		l.written[a.Checkpoint] = append(l.written[a.Checkpoint], filesOf(s.State)...)
	}
	if l.fail("metadata", a.Checkpoint) {
		l.due = append(l.due, MetadataFailed{a.Checkpoint, "full"})
		return
	}
	l.due = append(l.due, MetadataWritten{a.Checkpoint, fmt.Sprintf("metadata of %d", a.Checkpoint), 1})
}

func (l *ledger) end(ev Event, a CheckpointEnded) {
	s := a.Statistics
	if s.ID == weir.NoCheckpoint {
		return
	}
	if before, over := l.ended[s.ID]; over {
		l.t.Fatalf("%s after %s: it had %s before", a, ev, before)
	}
	if k := l.kinds[s.ID]; k.IsSavepoint() && !k.IsSynchronous() {
		if l.linked[s.ID] || s.Status == Completed && len(l.written[s.ID]) == 0 {
			l.t.Fatalf("%s after %s", a, ev)
		}
	} else if (s.Status == Completed) != l.linked[s.ID] {
		l.t.Fatalf("%s after %s: linked is %t", a, ev, l.linked[s.ID])
	}
	l.ended[s.ID] = s.Status
	if s.Status == Completed {
		for _, f := range l.written[s.ID] {
			l.files[f] = "owned"
		}
	}
}

func (l *ledger) notify(ev Event, a Action, id weir.CheckpointID, want CheckpointStatus) {
	if l.notified[id] || l.ended[id] != want {
		l.t.Fatalf("%s after %s: notified before is %t, it has %s", a, ev, l.notified[id], l.ended[id])
	}
	l.notified[id] = true
}

func (l *ledger) discard(ev Event, a Action, file string) {
	if was := l.files[file]; was != "sent" && was != "repeated" {
		l.t.Fatalf("%s after %s: file %s was %q", a, ev, file, was)
	}
	l.files[file] = "discarded"
}

// discardShared books that a file of in-flight data is deleted: never one that a
// checkpoint names, or will name when another subtask acknowledges.
func (l *ledger) discardShared(ev Event, a DiscardState, file string) {
	if l.c.find(a.Checkpoint) != nil || l.linked[a.Checkpoint] || l.ended[a.Checkpoint] == Completed && l.kinds[a.Checkpoint].IsSavepoint() {
		l.t.Fatalf("%s after %s: %s is in use", a, ev, file)
	}
	delete(l.shared, file)
}

// answer delivers the answer at position i of those due.
func (l *ledger) answer(i int) {
	ev := l.due[i]
	l.due = slices.Delete(l.due, i, i+1)
	l.step(ev)
}

// settle delivers all answers, ends what is pending and delivers the rest. Then all
// accounts must be even.
func (l *ledger) settle() {
	drain := func() {
		for len(l.due) > 0 {
			l.answer(0)
		}
	}
	drain()
	l.step(JobFailover{})
	drain()
	for id := range l.awaited {
		if _, over := l.ended[id]; !over {
			l.t.Fatalf("checkpoint %d did not end", id)
		}
	}
	for id := range l.ended {
		if k := l.kinds[id]; l.notified[id] == (l.ended[id] == Completed && k.IsSavepoint() && !k.IsSynchronous()) {
			l.t.Fatalf("nobody was told of the end of %d", id)
		}
	}
	for file, state := range l.files {
		if state == "sent" {
			l.t.Fatalf("file %s is nobody's", file)
		}
	}
	for file, id := range l.shared {
		if !l.linked[id] && !(l.kinds[id].IsSavepoint() && l.ended[id] == Completed) {
			l.t.Fatalf("file %s of checkpoint %d, which %s, is nobody's", file, id, l.ended[id])
		}
	}
	if len(l.timers) > 0 || l.c.Linking() || len(l.c.pending) > 0 || len(l.c.disposed) > 0 {
		l.t.Fatalf("timers %v, linking %t, pending %d, disposed %d", l.timers, l.c.Linking(), len(l.c.pending), len(l.c.disposed))
	}
	for id := range l.located {
		if l.ended[id] != Completed {
			l.t.Fatalf("the location of savepoint %d is left", id)
		}
	}
	retained := 0
	for range l.linked {
		retained++
	}
	if kept := len(l.c.Retained()); retained != kept {
		l.t.Fatalf("%d links are there, %d are known", retained, kept)
	}
}

// dir is where the files of a snapshot lie.
func (l *ledger) dir(id weir.CheckpointID) string {
	if l.kinds[id].IsSavepoint() {
		return fmt.Sprintf("sp-%d", id)
	}
	return fmt.Sprintf("chk-%d", id)
}

// withChannels adds in-flight data in a file that subtasks share.
func (l *ledger) withChannels(s weir.TaskStateSnapshot, id weir.CheckpointID, a weir.AttemptID) weir.TaskStateSnapshot {
	s.Channels = channelsIn(fmt.Sprintf("%s/channels-%d", l.dir(id), a.Subtask))
	return s
}

func filesOf(s weir.TaskStateSnapshot) (files []string) {
	for _, op := range s.Operators {
		for _, k := range op.Keyed {
			files = append(files, k.Handle.File)
		}
	}
	return files
}

// TestAllOrders takes three tasks through every order of their acknowledgements, an
// expiry, the failure of one of them with the failover, and of the answers that come
// due meanwhile; once with storage that works, once with each kind of failure.
func TestAllOrders(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"nothing", "metadata", "link"} {
		t.Run("failing_"+failing, func(t *testing.T) {
			t.Parallel()
			orders, completed := 0, 0
			var explore func(prefix []int)
			explore = func(prefix []int) {
				l, choices := replay(t, failing, prefix)
				if choices == 0 {
					orders++
					l.settle()
					if l.ended[1] == Completed {
						completed++
					}
					return
				}
				for i := range choices {
					explore(append(slices.Clone(prefix), i))
				}
			}
			explore(nil)
			t.Logf("%d orders, %d completed", orders, completed)
			if orders < 500 || (completed > 0) != (failing == "nothing") {
				t.Errorf("%d orders, %d completed", orders, completed)
			}
		})
	}
}

// replay makes the choices of a prefix and says how many there are next: the moves
// that are left, and the answers that are due.
func replay(t *testing.T, failing string, prefix []int) (*ledger, int) {
	o := Defaults()
	o.Interval, o.Timeout = time.Hour, time.Minute
	view := []VertexView{vertexView(testJob, 0, 1), vertexView(testJob, 1, 2)}
	view[1].Inputs = []InputView{{From: 0}}
	l := newLedger(t, o, 0, view)
	l.fail = func(what string, _ weir.CheckpointID) bool { return what == failing }
	l.step(TasksRunning{})
	l.step(Requested{Request: 1})
	l.answer(0) // the id
	var moves []func()
	for v := range view {
		for _, s := range view[v].Subtasks {
			moves = append(moves, func() {
				l.step(Acknowledged{Attempt: s.Attempt, Checkpoint: 1, State: l.withChannels(stateIn("chk-1/"+s.Attempt.String()), 1, s.Attempt)})
			})
		}
	}
	moves = append(moves,
		func() {
			key := TimerKey{Kind: ExpiryTimer, Checkpoint: 1}
			delete(l.timers, key) // fired, or late after its cancelling
			l.step(TimerFired{key})
		},
		func() {
			l.step(AttemptFailed{view[1].Subtasks[0].Attempt})
			l.step(JobFailover{})
		},
	)
	for _, choice := range prefix {
		if choice < len(moves) {
			move := moves[choice]
			moves = slices.Delete(moves, choice, choice+1)
			move()
			continue
		}
		l.answer(choice - len(moves))
	}
	return l, len(moves) + len(l.due)
}
