package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/taskmanager/snapshot"
)

// world is a task around a coordinator: everything that happens is written to a log.
type world struct {
	t        *testing.T
	c        *snapshot.Coordinator
	executor *snapshot.Executor
	store    *mem.Store
	backend  *fakeBackend
	log      []string
	results  chan snapshot.Result
	acked    []weir.TaskStateSnapshot
	metrics  []weir.CheckpointMetrics
	// What the fakes do.
	syncErr   error
	prepare   func()
	hold      chan struct{} // the backend's writing waits for it, if not nil
	writeErr  error
	elements  [][]byte
	postError error
	channels  bool // checkpoints may overtake data
	undecided int  // outputs
	armed     bool
}

const job = "job"

// run runs a test in a bubble, with one worker, and checks that nothing is left.
func run(t *testing.T, restored weir.CheckpointID, hook faulty.Hook, test func(w *world)) {
	t.Helper()
	runWith(t, nil, restored, hook, test)
}

func runWith(t *testing.T, setUp func(w *world), restored weir.CheckpointID, hook faulty.Hook, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: mem.New(), results: make(chan snapshot.Result, 100), elements: [][]byte{[]byte("position")}}
		w.backend = &fakeBackend{w: w}
		g := group.New(t.Context(), "test")
		var err error
		if w.executor, err = snapshot.NewExecutor(g, 1, 10); err != nil {
			t.Fatal(err)
		}
		op := weir.OperatorIDOf("count")
		var channels snapshot.ChannelState
		if setUp != nil {
			setUp(w)
			channels = channelState{w}
		}
		w.c = snapshot.New(snapshot.Options{
			Channels: channels,
			Attempt:  weir.AttemptID{Epoch: 3, N: 1}, Restored: restored,
			Refs: []snapshot.OperatorRef{{ID: op, Name: "count"}}, Sources: []weir.OperatorID{op},
			Operators: w, Outputs: outputs{w}, Reporter: w, Executor: w.executor,
			Post: func(r snapshot.Result) error {
				if w.postError != nil {
					return w.postError
				}
				w.results <- r
				return nil
			},
			Store: faulty.New(w.store, hook), Directory: job, InlineThreshold: 100,
		})
		w.c.AddKeyed(op, snapshot.Keyed{Name: "fake", Range: weir.KeyGroupRange{Last: 127}, Backend: w.backend})
		test(w)
		w.c.Close()
		w.executor.Close()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		if w.backend.captured != w.backend.released {
			t.Errorf("%d snapshots captured, %d released", w.backend.captured, w.backend.released)
		}
	})
}

func (w *world) trigger(id weir.CheckpointID) {
	w.t.Helper()
	err := w.c.Trigger(w.t.Context(), weir.Barrier{ID: id, Options: weir.CheckpointOptions{Location: fmt.Sprintf("chk-%d", id)}}, weir.CheckpointMetrics{})
	if err != nil {
		w.add("task failed: %v", err)
	}
}

// settle lets workers work and gives their results to the coordinator.
func (w *world) settle() {
	synctest.Wait()
	for len(w.results) > 0 {
		w.c.Done(w.t.Context(), <-w.results)
		synctest.Wait()
	}
}

// expect compares the log since the last call.
func (w *world) expect(step string, want ...string) {
	w.t.Helper()
	if !slices.Equal(w.log, want) {
		w.t.Errorf("%s:\ngot  %q\nwant %q", step, w.log, want)
	}
	w.log = nil
}

func (w *world) files() (names []string) {
	w.t.Helper()
	err := w.store.List(w.t.Context(), "", func(i blobstore.Info) error { names = append(names, i.Name); return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}

func (w *world) add(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) PrepareSnapshot(id weir.CheckpointID) error {
	if w.prepare != nil {
		w.prepare()
	}
	return nil
}

func (w *world) SnapshotState(id weir.CheckpointID) ([]operator.State, error) {
	w.add("snapshot %d", id)
	return []operator.State{{Operator: weir.OperatorIDOf("count"), Name: "count", Elements: w.elements}}, w.syncErr
}

func (w *world) NotifyComplete(id weir.CheckpointID) error { w.add("complete %d", id); return nil }
func (w *world) NotifyAborted(id weir.CheckpointID) error  { w.add("aborted %d", id); return nil }
func (w *world) Acknowledge(id weir.CheckpointID, s weir.TaskStateSnapshot, m weir.CheckpointMetrics) {
	w.add("ack %d", id)
	w.acked, w.metrics = append(w.acked, s), append(w.metrics, m)
}
func (w *world) Decline(id weir.CheckpointID, r weir.FailureReason, _ string) {
	w.add("decline %d %s", id, r)
}
func (w *world) BarrierSent(_ weir.OperatorID, id weir.CheckpointID) { w.add("sent %d", id) }

type outputs struct{ w *world }

func (o outputs) Barrier(b weir.Barrier) int {
	o.w.add("barrier %d%s", b.ID, map[weir.Alignment]string{weir.Unaligned: " unaligned"}[b.Options.Alignment])
	return o.w.undecided
}
func (o outputs) TimeoutBarrier(id weir.CheckpointID) { o.w.add("time out %d", id) }
func (o outputs) AbortBarrier(id weir.CheckpointID) {
	if o.w.channels {
		o.w.add("leave barrier %d", id)
	}
}
func (o outputs) ArmTimer(id weir.CheckpointID, d time.Duration) {
	o.w.add("arm %d %s", id, d)
	o.w.armed = true
}
func (o outputs) DisarmTimer() {
	if o.w.armed {
		o.w.add("disarm")
	}
	o.w.armed = false
}
func (o outputs) CancelBarrier(id weir.CheckpointID) { o.w.add("cancel %d", id) }

// fakeBackend counts its snapshots.
type fakeBackend struct {
	statebackend.Backend
	w                  *world
	captured, released int
	size               int
}

func (b *fakeBackend) Snapshot() (statebackend.Snapshot, error) {
	b.captured++
	return &fakeSnapshot{b: b}, nil
}

type fakeSnapshot struct {
	b        *fakeBackend
	released bool
}

func (s *fakeSnapshot) Write(ctx context.Context, out io.Writer) (int64, error) {
	if hold := s.b.w.hold; hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	if err := s.b.w.writeErr; err != nil {
		return 0, err
	}
	n, err := io.WriteString(out, strings.Repeat("x", 1+s.b.size))
	return int64(n), err
}
func (s *fakeSnapshot) Schemas() []weir.StateSchema { return []weir.StateSchema{{State: "n"}} }
func (s *fakeSnapshot) Release() {
	if s.released {
		s.b.w.t.Error("released twice")
	}
	s.released = true
	s.b.released++
}

func TestNotifications(t *testing.T) {
	t.Run("O-NOT-01_restored_is_reported", func(t *testing.T) {
		run(t, 7, faulty.Hook{}, func(w *world) {
			w.complete(7)
			w.expect("complete(7)")
			w.complete(9)
			w.complete(8)
			w.complete(9)
			w.expect("complete(9), complete(8), complete(9)", "complete 9")
		})
	})
	t.Run("O-NOT-02_lost_complete_is_repaired", func(t *testing.T) {
		run(t, 0, faulty.Hook{}, func(w *world) {
			w.abort(5, 4)
			w.expect("abort(5, 4)", "complete 4", "aborted 5")
			w.abort(6, 4)
			w.expect("abort(6, 4)", "aborted 6")
		})
	})
	t.Run("O-NOT-03_abort_before_barrier_is_remembered", func(t *testing.T) {
		run(t, 0, faulty.Hook{}, func(w *world) {
			w.trigger(3)
			w.settle()
			w.expect("3", "barrier 3", "sent 3", "snapshot 3", "ack 3")
			w.abort(5, 0)
			w.expect("abort(5)", "aborted 5")
			w.trigger(5)
			w.settle()
			w.expect("barriers for 5", "cancel 5")
			w.trigger(6)
			w.settle()
			w.expect("barriers for 6", "barrier 6", "sent 6", "snapshot 6", "ack 6")
		})
	})
	t.Run("O-NOT-04_abort_cancels_the_asynchronous_part", func(t *testing.T) {
		run(t, 0, faulty.Hook{}, func(w *world) {
			w.hold = make(chan struct{})
			w.trigger(3)
			synctest.Wait()
			w.expect("trigger", "barrier 3", "sent 3", "snapshot 3")
			w.abort(3, 0)
			w.settle()
			w.expect("abort(3)", "aborted 3")
			if w.c.Running() != 0 || len(w.files()) > 0 {
				t.Errorf("%d parts run, files %v", w.c.Running(), w.files())
			}
			close(w.hold)
			w.trigger(4) // 3 was not remembered, and 4 is not disturbed
			w.settle()
			w.expect("trigger(4)", "barrier 4", "sent 4", "snapshot 4", "ack 4")
		})
	})
}

func (w *world) complete(id weir.CheckpointID) {
	w.t.Helper()
	if err := w.c.NotifyComplete(id); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) abort(id, latest weir.CheckpointID) {
	w.t.Helper()
	if err := w.c.NotifyAborted(id, latest); err != nil {
		w.t.Fatal(err)
	}
}

func TestTaskSnapshot(t *testing.T) {
	t.Run("O-TSK-01_barrier_before_snapshot", func(t *testing.T) {
		run(t, 0, faulty.Hook{}, func(w *world) {
			w.prepare = func() { w.add("record r") }
			w.trigger(3)
			w.settle()
			w.expect("trigger", "record r", "barrier 3", "sent 3", "snapshot 3", "ack 3")
		})
	})
	t.Run("O-TSK-02_failed_synchronous_part_fails_the_task", func(t *testing.T) {
		run(t, 0, faulty.Hook{}, func(w *world) {
			w.syncErr = errors.New("no")
			w.trigger(3)
			w.settle()
			w.expect("trigger", "barrier 3", "sent 3", "snapshot 3", "task failed: no")
		})
	})
	t.Run("O-TSK-03_failed_asynchronous_part_declines", func(t *testing.T) {
		failing := faulty.Hook{Before: func(_ context.Context, op faulty.Op, _ string) error {
			if op == faulty.Commit {
				return errors.New("disk full")
			}
			return nil
		}}
		run(t, 0, failing, func(w *world) {
			w.backend.size = 5000
			w.trigger(3)
			w.settle()
			w.expect("trigger", "barrier 3", "sent 3", "snapshot 3", "decline 3 CHECKPOINT_ASYNC_EXCEPTION")
			if f := w.files(); len(f) > 0 {
				t.Errorf("left behind: %v", f)
			}
		})
	})
	t.Run("O-TSK-04_ids_only_grow", func(t *testing.T) {
		run(t, 0, faulty.Hook{}, func(w *world) {
			w.trigger(5)
			w.settle()
			w.log = nil
			w.trigger(4)
			w.trigger(5)
			w.settle()
			w.expect("trigger(4), trigger(5)")
		})
	})
}

func TestStateIsWrittenBeforeItIsAcknowledged(t *testing.T) {
	for _, size := range []int{10, 5000} {
		run(t, 0, faulty.Hook{}, func(w *world) {
			w.backend.size = size
			w.trigger(1)
			w.settle()
			if len(w.acked) != 1 || len(w.acked[0].Operators) != 1 {
				t.Fatalf("acknowledged %+v", w.acked)
			}
			op := w.acked[0].Operators[0]
			if op.Name != "count" || len(op.Keyed) != 1 || len(op.Elements) != 1 || len(op.Schemas) != 1 || op.Keyed[0].Backend != "fake" {
				t.Fatalf("acknowledged %+v", op)
			}
			for want, h := range map[string]weir.StateHandle{strings.Repeat("x", 1+size): op.Keyed[0].Handle, "position": op.Elements[0]} {
				r, err := snapshotmeta.OpenHandle(t.Context(), w.store, job, h)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(r); err != nil || string(got) != want {
					t.Errorf("read %d bytes and %v, want %d", len(got), err, len(want))
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			if got, want := w.metrics[0].StateBytes, int64(1+size+len("position")); got != want {
				t.Errorf("state of %d bytes, want %d", got, want)
			}
			if inline := size < 100; inline != (len(w.files()) == 0) {
				t.Errorf("%d bytes: files %v", size, w.files())
			}
		})
	}
}

func TestAbortOnBarrierDeclinesAndCancelsDownstream(t *testing.T) {
	run(t, 0, faulty.Hook{}, func(w *world) {
		w.c.Abort(4, weir.CheckpointDeclinedOnCancellationBarrier)
		w.expect("abort", "decline 4 CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER", "cancel 4")
		w.trigger(4)
		w.settle()
		w.expect("a trigger of the aborted checkpoint")
	})
}

// The file was complete when the abort came, but nobody had been told of it, since what
// was in flight was not captured yet.
func TestStateOfAnAbortedCheckpointIsDeleted(t *testing.T) {
	inFlight(t, func(w *world) {
		w.backend.size = 5000
		w.triggerWith(1, 0, overtaking)
		synctest.Wait()
		if len(w.files()) != 1 {
			t.Fatalf("files %v, want one", w.files())
		}
		w.abort(1, 0)
		w.settle()
		w.expect("abort", "start 1 chk", "barrier 1 unaligned", "output 1", "sent 1", "snapshot 1",
			"abort channels 1", "leave barrier 1", "aborted 1")
		if f := w.files(); len(f) > 0 {
			t.Errorf("left behind: %v", f)
		}
	})
}

func TestStateThatNobodyTakesIsDeleted(t *testing.T) {
	inFlight(t, func(w *world) {
		w.backend.size = 5000
		w.postError = errors.New("mailbox closed")
		w.triggerWith(1, 0, overtaking)
		w.settle()
		if f := w.files(); len(f) > 0 {
			t.Errorf("left behind: %v", f)
		}
	})
}

func TestFullExecutorDeclines(t *testing.T) {
	run(t, 0, faulty.Hook{}, func(w *world) {
		w.hold = make(chan struct{})
		w.trigger(1)
		synctest.Wait() // a worker has it
		for id := weir.CheckpointID(2); id <= 11; id++ {
			w.trigger(id)
		}
		w.log = nil
		w.trigger(12)
		w.expect("trigger", "barrier 12", "sent 12", "snapshot 12", "decline 12 CHECKPOINT_ASYNC_EXCEPTION")
		close(w.hold)
		w.settle()
		if len(w.acked) != 11 {
			t.Errorf("%d acknowledged, want 11", len(w.acked))
		}
	})
}

func TestReasonOfAnErrorReachesTheJobManager(t *testing.T) {
	run(t, 0, faulty.Hook{}, func(w *world) {
		w.writeErr = &snapshot.ReasonError{Reason: weir.IOException, Err: errors.New("x")}
		w.trigger(1)
		w.settle()
		w.expect("trigger", "barrier 1", "sent 1", "snapshot 1", "decline 1 IO_EXCEPTION")
	})
}

func TestNothingIsSaidAfterClose(t *testing.T) {
	run(t, 0, faulty.Hook{}, func(w *world) {
		w.hold = make(chan struct{})
		w.trigger(1)
		synctest.Wait()
		w.log = nil
		w.c.Close()
		w.settle()
		w.trigger(2)
		w.expect("close")
	})
}

// Only so many aborted ids are remembered; what may have been forgotten counts as
// aborted.
func TestRememberedAbortsAreBounded(t *testing.T) {
	run(t, 0, faulty.Hook{}, func(w *world) {
		for id := weir.CheckpointID(1000); id < 1200; id++ {
			w.abort(id, 0)
		}
		w.log = nil
		w.trigger(900) // so old that it may have been forgotten
		w.trigger(1199)
		w.trigger(1200)
		w.settle()
		w.expect("triggers", "cancel 900", "cancel 1199", "barrier 1200", "sent 1200", "snapshot 1200", "ack 1200")
	})
}
