package jobmanager

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// completedIn counts the checkpoints of a job that are completed while time passes.
func (w *world) completedIn(jm *JobManager, job string, d time.Duration) int64 {
	w.t.Helper()
	count := func() int64 {
		synctest.Wait()
		list, err := jm.Checkpoints(w.t.Context(), job)
		w.must(err)
		return list.Completed
	}
	before := count()
	time.Sleep(d)
	return count() - before
}

func TestTheIntervalChangesWhileTheJobRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		w.submit(jm, "job", "execution.checkpointing.interval=1h")
		w.submit(jm, "plain")
		w.await(jm, "job", rpc.JobRunning)
		ask := func(set bool, every time.Duration) (time.Duration, error) {
			r, err := jm.CheckpointInterval(t.Context(), rpc.IntervalRequest{Job: "job", Set: set, Interval: every})
			return r.Interval, err
		}
		if every, err := ask(false, 0); err != nil || every != time.Hour {
			t.Errorf("the interval is %s, %v", every, err)
		}
		_, err := ask(true, time.Millisecond)
		w.wantError(err, rpc.CodeInvalidArgument, "1ms is not between 10ms", "goes on as before")
		_, err = ask(true, -time.Second)
		w.wantError(err, rpc.CodeInvalidArgument, "not between")
		_, err = jm.CheckpointInterval(t.Context(), rpc.IntervalRequest{Job: "plain", Set: true, Interval: time.Second})
		w.wantError(err, rpc.CodeInvalidArgument, "submitted without execution.checkpointing.interval")
		_, err = jm.CheckpointInterval(t.Context(), rpc.IntervalRequest{Job: "nobody"})
		w.wantError(err, rpc.CodeNotFound)
		if every, err := ask(true, 2*time.Second); err != nil || every != 2*time.Second {
			t.Errorf("set to %s, %v", every, err)
		}
		if n := w.completedIn(jm, "job", 20*time.Second); n < 9 || n > 11 {
			t.Errorf("%d checkpoints in 20 s", n)
		}
		if every, err := ask(false, 0); err != nil || every != 2*time.Second {
			t.Errorf("the interval is %s, %v", every, err)
		}
		w.must(jm.Stop(t.Context()))

		// Another leader knows it too.
		jm = w.manager()
		f.join(jm, 1).live(w.hearts())
		w.await(jm, "job", rpc.JobRunning)
		if n := w.completedIn(jm, "job", 20*time.Second); n < 8 || n > 11 {
			t.Errorf("%d checkpoints in 20 s under another leader", n)
		}
		if _, err := ask(true, 0); err != nil {
			t.Fatal(err)
		}
		w.completedIn(jm, "job", time.Second)
		if n := w.completedIn(jm, "job", time.Hour); n != 0 {
			t.Errorf("%d checkpoints without an interval", n)
		}
	})
}

// TestTooManyFailedCheckpointsRestartTheJob: with a tolerable number of them.
func TestTooManyFailedCheckpointsRestartTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		w.submit(jm, "job", "execution.checkpointing.interval=1s", "execution.checkpointing.timeout=2s", "execution.checkpointing.tolerable-failed-checkpoints=2")
		w.awaitCheckpoint(jm, "job", 1)
		f.silence()
		time.Sleep(5 * time.Second)
		if d, err := jm.Get(t.Context(), "job"); err != nil || d.Restarts != 0 {
			t.Errorf("%d restarts after two failures, %v", d.Restarts, err)
		}
		time.Sleep(5 * time.Second)
		f.set(func() { f.mu.mute = false })
		d := w.await(jm, "job", rpc.JobRunning)
		if d.Restarts != 1 || d.RestoredFrom == "" {
			t.Errorf("%d restarts, restored from %q, failure %v", d.Restarts, d.RestoredFrom, d.Failure)
		}
	})
}

// TestSeveralCheckpointsAtATime: with max-concurrent-checkpoints, a slow checkpoint does
// not hold the next one up, and the newest to complete ends the older ones.
func TestSeveralCheckpointsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		w.submit(jm, "job", "execution.checkpointing.interval=1s", "execution.checkpointing.max-concurrent-checkpoints=3")
		w.awaitCheckpoint(jm, "job", 1)
		f.silence()
		time.Sleep(10 * time.Second)
		list, err := jm.Checkpoints(t.Context(), "job")
		w.must(err)
		if list.Pending != 3 {
			t.Errorf("%d are pending", list.Pending)
		}
		f.set(func() { f.mu.mute = false })
		r, err := jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", Kind: weir.Savepoint}) // forced: it does not wait
		w.must(err)
		if list, err = jm.Checkpoints(t.Context(), "job"); err != nil || list.Pending != 3 {
			t.Errorf("%d are pending after savepoint %d, %v", list.Pending, r.Checkpoint, err)
		}
	})
}
