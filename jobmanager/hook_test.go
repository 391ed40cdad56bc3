package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// diary is what happened to the hooks of a test, whichever was made.
type diary struct {
	mu struct {
		sync.Mutex
		lines []string
	}
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.lines = append(d.mu.lines, fmt.Sprintf(format, args...))
}

func (d *diary) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mu.lines)
}

// testHook notes what it is asked, and does what trigger and restore say.
type testHook struct {
	diary   *diary
	trigger func(id int64) error
	restore func(id int64) error
}

func (h *testHook) Restore(_ context.Context, id int64, state []byte) error {
	h.diary.note("restore %d %q", id, state)
	if h.restore != nil {
		return h.restore(id)
	}
	return nil
}

func (h *testHook) Trigger(_ context.Context, id int64) ([]byte, error) {
	h.diary.note("trigger %d", id)
	if h.trigger != nil {
		if err := h.trigger(id); err != nil {
			return nil, err
		}
	}
	return fmt.Appendf(nil, "state %d", id), nil
}

func (h *testHook) NotifyComplete(id int64) { h.diary.note("complete %d", id) }
func (h *testHook) Close() error            { h.diary.note("close"); return nil }

// hooked starts a world whose jobs have a hook.
func hooked(t *testing.T, newHook func() operator.MasterHook) (*world, *JobManager, *fleet) {
	w := newWorld(t)
	jm, f := w.manager(), w.fleet()
	f.join(jm, 1).live(w.hearts())
	w.catalog.mu.Lock()
	w.catalog.mu.hook = newHook
	w.catalog.mu.Unlock()
	return w, jm, f
}

func TestHookStandsInCheckpointsAndIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		w, jm, f := hooked(t, func() operator.MasterHook { return &testHook{diary: &d} })
		job := w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		w.awaitCheckpoint(jm, "job", 2)
		synctest.Wait()
		want := []string{`restore 0 ""`, "trigger 1", "complete 1", "trigger 2", "complete 2"}
		if got := d.lines(); len(got) < 5 || !slices.Equal(got[:5], want) {
			t.Fatalf("%q, want %q", got, want)
		}
		before := len(d.lines())
		f.fail(job, 0, 0, &weir.Failure{Message: "broken"})
		w.await(jm, "job", rpc.JobRestarting)
		w.await(jm, "job", rpc.JobRunning)
		synctest.Wait()
		l, err := jm.Checkpoints(t.Context(), "job")
		w.must(err)
		restored := fmt.Sprintf("restore %d \"state %d\"", l.Restored, l.Restored)
		if got := d.lines()[before:]; l.Restored < 2 || !slices.Contains(got, restored) || !slices.Contains(got, "close") {
			t.Errorf("%q, want %q among them", got, restored)
		}
	})
}

func TestNothingIsDeployedBeforeHooksAreRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		release := make(chan struct{})
		w, jm, f := hooked(t, func() operator.MasterHook {
			return &testHook{diary: &d, restore: func(int64) error { <-release; return nil }}
		})
		w.submit(jm, "job", checkpointed)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(f.deployments()); n != 0 || !slices.Equal(d.lines(), []string{`restore 0 ""`}) {
			t.Errorf("%d tasks were deployed; %q", n, d.lines())
		}
		close(release)
		w.await(jm, "job", rpc.JobRunning)
	})
}

// O-TRG: no task is triggered before the hook has answered.
func TestHookIsCalledBeforeTasksAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		release := make(chan struct{})
		w, jm, f := hooked(t, func() operator.MasterHook {
			return &testHook{diary: &d, trigger: func(int64) error { <-release; return nil }}
		})
		job := w.submit(jm, "job", checkpointed, "execution.checkpointing.timeout=10m")
		w.await(jm, "job", rpc.JobRunning)
		time.Sleep(time.Minute)
		if got := d.lines(); !slices.Equal(got, []string{`restore 0 ""`, "trigger 1"}) {
			t.Errorf("%q", got)
		}
		d0 := f.deployments()[0].Attempt
		f.mu.Lock()
		tm := f.mu.tasks[d0].tm
		f.mu.Unlock()
		if n := len(f.triggered(job, tm)); n != 0 {
			t.Errorf("tasks were triggered for %d checkpoints", n)
		}
		close(release)
		w.awaitCheckpoint(jm, "job", 1)
		if len(f.triggered(job, tm)) == 0 {
			t.Error("nothing was triggered there at all")
		}
	})
}

func TestHookThatFailsFailsCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		w, jm, _ := hooked(t, func() operator.MasterHook {
			return &testHook{diary: &d, trigger: func(id int64) error {
				if id < 3 {
					return errors.New("the outside is away")
				}
				return nil
			}}
		})
		w.submit(jm, "job", checkpointed)
		w.awaitCheckpoint(jm, "job", 3)
		l, err := jm.Checkpoints(t.Context(), "job")
		w.must(err)
		if x := l.Recent[len(l.Recent)-1]; l.Failed != 2 || x.Reason != weir.TriggerCheckpointFailure || !strings.Contains(x.Message, `master hook "note": the outside is away`) {
			t.Errorf("%d failed; the first: %s %q", l.Failed, x.Reason, x.Message)
		}
	})
}

// A hook that hangs fails its job's checkpoints, without a heap of requests; one that
// panics, or cannot be restored, has the job restarted with another one. No other job
// notices.
func TestBadHookHarmsItsJobOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		made := map[string]int{}
		var kind string
		w, jm, _ := hooked(t, nil)
		set := func(k string) {
			w.catalog.mu.Lock()
			defer w.catalog.mu.Unlock()
			kind = k
			w.catalog.mu.hook = func() operator.MasterHook {
				made[kind]++
				first, h := made[kind] == 1, &testHook{diary: &d}
				switch {
				case kind == "hangs":
					h.trigger = func(int64) error { <-release; return nil }
				case kind == "panics" && first:
					h.trigger = func(int64) error { panic("no position") }
				case kind == "unrestored" && first:
					h.restore = func(int64) error { return errors.New("the outside is away") }
				case kind == "stuck" && first:
					h.restore = func(int64) error { <-release; return nil }
				}
				return h
			}
		}
		for _, k := range []string{"hangs", "panics", "unrestored", "stuck"} {
			set(k)
			w.submit(jm, k, checkpointed, "execution.checkpointing.timeout=2s")
			if k == "hangs" {
				w.await(jm, k, rpc.JobRunning)
				time.Sleep(20 * time.Second)
				l, err := jm.Checkpoints(t.Context(), k)
				w.must(err)
				if l.Completed != 0 || l.Failed < 2 || !strings.Contains(l.Recent[0].Message, "busy with checkpoint 1") && l.Recent[0].Reason != weir.CheckpointExpired {
					t.Errorf("%+v", l)
				}
			} else {
				if k == "stuck" {
					time.Sleep(2 * time.Minute)
				}
				w.awaitCheckpoint(jm, k, 1)
				if d := w.await(jm, k, rpc.JobRunning); d.Restarts != 1 || d.Failure == nil || !strings.Contains(d.Failure.Message, `master hook "note"`) {
					t.Errorf("%s: %d restarts, %+v", k, d.Restarts, d.Failure)
				}
			}
			w.must(jm.Cancel(t.Context(), k))
			w.await(jm, k, rpc.JobCanceled)
		}
	})
}

func TestHooksStateIsNotDroppedSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		w, jm, _ := hooked(t, func() operator.MasterHook { return &testHook{diary: &d} })
		w.submit(jm, "job", checkpointed)
		info := w.awaitCheckpoint(jm, "job", 1)
		w.must(jm.Cancel(t.Context(), "job"))
		w.await(jm, "job", rpc.JobCanceled)
		w.catalog.mu.Lock()
		w.catalog.mu.hook = nil
		w.catalog.mu.Unlock()
		_, err := jm.Submit(t.Context(), rpc.SubmitRequest{Entrypoint: "demo", Name: "other", From: info.Path})
		if err == nil || !strings.Contains(err.Error(), `it has state of master hook "note"`) {
			t.Errorf("got %v", err)
		}
	})
}
