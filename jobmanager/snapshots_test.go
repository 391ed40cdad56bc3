package jobmanager

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// take takes a savepoint.
func (w *world) take(jm *JobManager, job, request string) rpc.SnapshotReply {
	w.t.Helper()
	r, err := jm.TakeSnapshot(w.t.Context(), rpc.SnapshotRequest{Job: job, RequestID: request, Kind: weir.Savepoint})
	w.must(err)
	return r
}

func (w *world) stop(jm *JobManager, job, request string) (rpc.StopReply, error) {
	return jm.StopJob(w.t.Context(), rpc.StopRequest{Job: job, RequestID: request})
}

// setFleet changes how the tasks behave.
func (f *fleet) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func TestSavepointsOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		job := w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		r := w.take(jm, "job", "r1")
		if again := w.take(jm, job.String(), "r1"); again.Path != r.Path || again.Checkpoint != r.Checkpoint {
			t.Errorf("the same request: %+v, and then %+v", r, again)
		}
		if other := w.take(jm, "job", "r2"); other.Path == r.Path {
			t.Errorf("two savepoints in %s", r.Path)
		}
		_, err := jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", RequestID: "r1", Kind: weir.FullCheckpoint})
		w.wantError(err, rpc.CodeFailedPrecondition, "used for a savepoint")
		name := strings.TrimPrefix(r.Path, w.blobs.Location()+"/") + "/" + snapshotmeta.MetadataFile
		s, err := snapshotmeta.Open(t.Context(), w.blobs, name)
		w.must(err)
		if s.Header.Kind != weir.Savepoint || s.Header.Job != job || s.Header.Checkpoint != r.Checkpoint {
			t.Errorf("header %+v", s.Header)
		}
		if c, err := jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", Kind: weir.FullCheckpoint}); err != nil || !strings.Contains(c.Path, "/chk-") {
			t.Errorf("a checkpoint on request: %+v, %v", c, err)
		}
		w.awaitCheckpoint(jm, "job", r.Checkpoint+5)
		w.must(jm.Stop(t.Context()))

		// Another leader, which knows nothing of the request, finds its savepoint.
		jm = w.manager()
		f.join(jm, 1).live(w.hearts())
		w.await(jm, "job", rpc.JobRunning)
		if again := w.take(jm, "job", "r1"); again.Path != r.Path || again.Checkpoint != r.Checkpoint {
			t.Errorf("the same request under another leader: %+v, want %+v", again, r)
		}
		from := request("second", checkpointed)
		from.From = r.Path
		_, err = jm.Submit(t.Context(), from)
		w.must(err)
		d := w.await(jm, "second", rpc.JobRunning)
		if !strings.Contains(d.RestoredFrom, "savepoint") {
			t.Errorf("restored from %q", d.RestoredFrom)
		}
	})
}

// TestStopIsIdempotent: field report B18.
func TestStopIsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		f.set(func() { f.mu.linger = true })
		job := w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		var wg sync.WaitGroup
		replies := make([]rpc.StopReply, 3)
		for i := range replies {
			wg.Go(func() {
				var err error
				replies[i], err = w.stop(jm, "job", "r1")
				w.must(err)
			})
		}
		time.Sleep(time.Second)
		if d, err := jm.Get(t.Context(), "job"); err != nil || d.Stopping != "r1" {
			t.Errorf("%q stops the job, %v", d.Stopping, err)
		}
		_, err := w.stop(jm, "job", "r2")
		w.wantError(err, rpc.CodeFailedPrecondition, "already", "r1")
		_, err = jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", Kind: weir.Savepoint})
		w.wantError(err, rpc.CodeFailedPrecondition, "being stopped")
		f.finishAll(job)
		wg.Wait()
		want := replies[0]
		if want.Path == "" || want.Status != rpc.JobFinished || want.Failure != "" || replies[1] != want || replies[2] != want {
			t.Errorf("answers %+v", replies)
		}
		d := w.await(jm, "job", rpc.JobFinished)
		if d.Savepoint != want.Path || d.LastCheckpoint != want.Checkpoint {
			t.Errorf("savepoint %q, last checkpoint %d, want %+v", d.Savepoint, d.LastCheckpoint, want)
		}

		// The job that goes on from it has the same name, and is not meant by the first request.
		f.set(func() { f.mu.linger = false })
		from := rpc.SubmitRequest{Entrypoint: "demo", Name: "job", RequestID: "again", From: want.Path}
		_, err = jm.Submit(t.Context(), from)
		w.must(err)
		w.await(jm, "job", rpc.JobRunning)
		w.must(jm.Stop(t.Context()))
		jm = w.manager()
		f.join(jm, 1).live(w.hearts())
		w.await(jm, "job", rpc.JobRunning)
		for _, name := range []string{"job", job.String()} {
			if r, err := w.stop(jm, name, "r1"); err != nil || r != want {
				t.Errorf("%s: %+v, %v; want %+v", name, r, err, want)
			}
		}
		_, err = w.stop(jm, job.String(), "r3")
		w.wantError(err, rpc.CodeFailedPrecondition, "FINISHED", want.Path)
		w.await(jm, "job", rpc.JobRunning)
		if r, err := w.stop(jm, "job", "r4"); err != nil || r.Path == want.Path {
			t.Errorf("%+v, %v", r, err)
		}
		w.await(jm, "job", rpc.JobFinished)
	})
}

// TestStopWithASavepointButNoEnd: field report B20. The savepoint is complete, a task fails before it
// has ended.
func TestStopWithASavepointButNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		f.set(func() { f.mu.linger = true })
		job := w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		w.awaitCheckpoint(jm, "job", 1)
		answer := make(chan rpc.StopReply, 1)
		done := w.hearts()
		w.must(done.Go("stop", func(context.Context) error {
			r, err := w.stop(jm, "job", "r1")
			w.must(err)
			answer <- r
			return nil
		}))
		time.Sleep(time.Second)
		f.fail(job, 1, 0, &weir.Failure{Message: "commit failed"})
		r := <-answer
		if r.Path == "" || !strings.Contains(r.Failure, "commit failed") || r.Status == rpc.JobFinished {
			t.Errorf("answer %+v", r)
		}
		f.set(func() { f.mu.linger = false })
		w.await(jm, "job", rpc.JobRunning)
		for _, d := range f.deployments() {
			if d.Attempt.N > 1 && d.RestoredFrom != r.Checkpoint {
				t.Errorf("%s starts from %d, the savepoint is %d", d.Attempt, d.RestoredFrom, r.Checkpoint)
			}
		}
		if again, err := w.stop(jm, "job", "r1"); err != nil || again.Path != r.Path || again.Failure != r.Failure {
			t.Errorf("the same request: %+v, %v; want %+v", again, err, r)
		}
		w.must(jm.Stop(t.Context()))
		jm = w.manager()
		f.join(jm, 1).live(w.hearts())
		w.await(jm, "job", rpc.JobRunning)
		if again, err := w.stop(jm, "job", "r1"); err != nil || again.Path != r.Path || again.Failure != r.Failure {
			t.Errorf("the same request under another leader: %+v, %v; want %+v", again, err, r)
		}
		if second, err := w.stop(jm, "job", "r2"); err != nil || second.Failure != "" || second.Checkpoint <= r.Checkpoint {
			t.Errorf("a second stop: %+v, %v", second, err)
		}
	})
}

// refusing refuses to write savepoints.
type refusing struct{ blobstore.Store }

func (s refusing) Create(ctx context.Context, name string) (blobstore.Writer, error) {
	if strings.HasPrefix(name, defaultSavepoints+"/") {
		return nil, errors.New("no space left on device")
	}
	return s.Store.Create(ctx, name)
}

// TestStopWithoutASavepoint: field report B15. Never a dead job with its state at hand.
func TestStopWithoutASavepoint(t *testing.T) {
	t.Run("O-SWS-02_directory_full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			jm, f := w.manager(func(c *Config) { c.Blobs = refusing{c.Blobs} }), w.fleet()
			f.join(jm, 1).live(w.hearts())
			w.submit(jm, "job", checkpointed)
			w.await(jm, "job", rpc.JobRunning)
			_, err := w.stop(jm, "job", "r1")
			w.wantError(err, rpc.CodeFailedPrecondition, "no space left")
			_, again := w.stop(jm, "job", "r1")
			w.wantError(again, rpc.CodeFailedPrecondition, "no space left")
			_, err = jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", Kind: weir.Savepoint})
			w.wantError(err, rpc.CodeFailedPrecondition, "no space left") // not unavailable: that, a client would ask again for a minute
			last := w.awaitCheckpoint(jm, "job", 1).ID
			w.awaitCheckpoint(jm, "job", last+2)
			if d := w.await(jm, "job", rpc.JobRunning); d.Restarts != 0 {
				t.Errorf("%d restarts", d.Restarts)
			}
		})
	})
	t.Run("task_declines", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			jm, f := w.manager(), w.fleet()
			f.join(jm, 1).live(w.hearts())
			f.set(func() { f.mu.refuse = true })
			w.submit(jm, "job", checkpointed, "restart-strategy.type=none")
			w.await(jm, "job", rpc.JobRunning)
			w.awaitCheckpoint(jm, "job", 1)
			_, err := w.stop(jm, "job", "r1")
			w.wantError(err, rpc.CodeFailedPrecondition, "disk full")
			if d := w.await(jm, "job", rpc.JobRunning); d.Restarts != 1 {
				t.Errorf("%d restarts, want 1", d.Restarts)
			}
		})
	})
}

// TestStopGoesOnUnderAnotherLeader kills the JobManager while the savepoint of a stop is
// under way, and after it is complete.
func TestStopGoesOnUnderAnotherLeader(t *testing.T) {
	for _, complete := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			jm, f := w.manager(), w.fleet()
			f.join(jm, 1).live(w.hearts())
			f.set(func() { f.mu.linger, f.mu.mute = complete, !complete })
			w.submit(jm, "job", checkpointed)
			w.await(jm, "job", rpc.JobRunning)
			late, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := jm.StopJob(late, rpc.StopRequest{Job: "job", RequestID: "r1"}); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("stopped: %v", err)
			}
			w.must(jm.Stop(t.Context()))
			f.set(func() { f.mu.linger, f.mu.mute = false, false })
			jm = w.manager()
			f.join(jm, 1).live(w.hearts())
			r, err := w.stop(jm, "job", "r1")
			w.must(err)
			if d := w.await(jm, "job", rpc.JobFinished); r.Path == "" || r.Failure != "" || d.Savepoint != r.Path {
				t.Errorf("complete %t: %+v, the job says %q", complete, r, d.Savepoint)
			}
		})
	}
}

func TestBadSnapshotRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		w.submit(jm, "job", checkpointed)
		_, err := w.stop(jm, "job", "r0")
		w.wantError(err, rpc.CodeFailedPrecondition, "does not run")
		_, err = jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", Kind: weir.Savepoint})
		w.wantError(err, rpc.CodeFailedPrecondition, "does not run")
		f.join(jm, 1).live(w.hearts())
		w.await(jm, "job", rpc.JobRunning)
		for _, target := range []string{"../up", "a/../../b", "/etc", "a//b", "a\x00b", `a\..\b`, strings.Repeat("x", 5000)} {
			_, err := jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", Kind: weir.Savepoint, Target: target})
			w.wantError(err, rpc.CodeInvalidArgument, "savepoint directory")
			_, err = jm.StopJob(t.Context(), rpc.StopRequest{Job: "job", Target: target})
			w.wantError(err, rpc.CodeInvalidArgument, "savepoint directory")
			_, err = jm.Submit(t.Context(), request("other", "execution.checkpointing.savepoint-dir="+target))
			w.wantError(err, rpc.CodeInvalidArgument, "savepoint-dir")
		}
		_, err = jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "nobody", Kind: weir.Savepoint})
		w.wantError(err, rpc.CodeNotFound, "nobody")
		_, err = w.stop(jm, "nobody", "r")
		w.wantError(err, rpc.CodeNotFound, "nobody")
		_, err = w.stop(jm, "job", strings.Repeat("r", 300))
		w.wantError(err, rpc.CodeInvalidArgument, "longer")
		_, err = jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", RequestID: "a\nb", Kind: weir.Savepoint})
		w.wantError(err, rpc.CodeInvalidArgument, "printed")
		_, err = jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", Kind: weir.SuspendSavepoint})
		w.wantError(err, rpc.CodeInvalidArgument, "part of a stop")
		w.await(jm, "job", rpc.JobRunning)
	})
}

// TestSavepointDirectories: where savepoints go.
func TestSavepointDirectories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		w.submit(jm, "job", checkpointed, "execution.checkpointing.savepoint-dir=mine/too")
		w.await(jm, "job", rpc.JobRunning)
		root := path.Join(w.blobs.Location(), defaultSavepoints)
		for target, want := range map[string]string{"": root + "/mine/too", "other": root + "/other"} {
			r, err := jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", Kind: weir.NativeSavepoint, Target: target})
			w.must(err)
			if path.Dir(r.Path) != want {
				t.Errorf("target %q: %s, want it in %s", target, r.Path, want)
			}
			from := request("from "+target, checkpointed)
			from.From = r.Path
			if _, err := jm.Plan(t.Context(), from); err != nil {
				t.Errorf("start from %s: %v", r.Path, err)
			}
		}
	})
}
