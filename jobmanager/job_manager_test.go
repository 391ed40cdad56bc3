package jobmanager

import (
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

func checksum(s string) uint32 {
	return crc32.Checksum([]byte(s), crc32.MakeTable(crc32.Castagnoli))
}

const checkpointed = "execution.checkpointing.interval=1s"

func TestJobRunsTakesCheckpointsAndIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		id := w.submit(jm, "job", checkpointed)
		d := w.await(jm, "job", rpc.JobRunning)
		if len(d.Tasks) != 2 || d.Running != 2 || d.Tasks[0].State != rpc.TaskRunning || !strings.HasPrefix(d.Tasks[0].TaskManager, "host1/") {
			t.Errorf("detail: %+v", d.Tasks)
		}
		if got := f.deployments()[1].Splits["src"]; len(got) != 1 || string(got[0]) != "split-0" {
			t.Errorf("splits %q", got)
		}
		c := w.awaitCheckpoint(jm, id.String(), 3)
		if len(c.Subtasks) != 2 || c.Bytes == 0 || !strings.HasSuffix(c.Path, "/chk-3") {
			t.Errorf("checkpoint: %+v", c)
		}
		lines := w.logs.FilterMessage("checkpoint completed").All()
		if len(lines) == 0 || lines[0].ContextMap()["checkpoint"] != int64(1) || lines[0].ContextMap()["bytes"] == int64(0) || lines[0].ContextMap()["job"] != id.String() {
			t.Errorf("log lines of checkpoints: %v", lines)
		}
		time.Sleep(3 * time.Second)
		if d, _ := jm.Get(t.Context(), "job"); d.Tasks[0].Stats.RecordsIn != 42 {
			t.Errorf("no live figures: %+v", d.Tasks[0])
		}
		w.must(jm.Cancel(t.Context(), "job"))
		w.await(jm, "job", rpc.JobCanceled)
		w.must(jm.Cancel(t.Context(), "job"))
		if n := f.running(); n != 0 {
			t.Errorf("%d tasks run after the cancellation", n)
		}
		list, err := jm.Checkpoints(t.Context(), "job")
		w.must(err)
		if len(list.Recent) == 0 || list.Completed < 3 {
			t.Errorf("checkpoints of a canceled job: %+v", list)
		}
	})
}

func TestFinishedAndFailedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		id := w.submit(jm, "bounded")
		w.await(jm, "bounded", rpc.JobRunning)
		f.finishAll(id)
		w.await(jm, "bounded", rpc.JobFinished)
		w.wantError(jm.Cancel(t.Context(), "bounded"), rpc.CodeFailedPrecondition, "FINISHED")

		time.Sleep(time.Second)
		id = w.submit(jm, "broken")
		w.await(jm, "broken", rpc.JobRunning)
		f.fail(id, 1, 0, &weir.Failure{Message: "boom", Operator: "count"})
		d := w.await(jm, "broken", rpc.JobFailed)
		if d.Failure == nil || d.Failure.Message != "boom" || !strings.Contains(d.Detail, "boom") {
			t.Errorf("failure %+v, detail %q", d.Failure, d.Detail)
		}
		jobs, err := jm.List(t.Context())
		w.must(err)
		if len(jobs) != 2 || jobs[0].Name != "broken" || jobs[0].Ended.IsZero() || jobs[0].Tasks != 2 {
			t.Errorf("list: %+v", jobs)
		}
	})
}

func TestNamesAndRequestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		first := w.submit(jm, "job")
		again, err := jm.Submit(t.Context(), request("job"))
		w.must(err)
		if again.Job != first || !again.Existed {
			t.Errorf("the same request id made %+v, want %s", again, first)
		}
		other := request("job")
		other.RequestID = "another"
		_, err = jm.Submit(t.Context(), other)
		w.wantError(err, rpc.CodeAlreadyExists, first.String())
		renamed := request("job2")
		renamed.RequestID = "request-job"
		_, err = jm.Submit(t.Context(), renamed)
		w.wantError(err, rpc.CodeAlreadyExists, "request id")

		w.must(jm.Cancel(t.Context(), "job"))
		w.await(jm, "job", rpc.JobCanceled)
		second, err := jm.Submit(t.Context(), other)
		w.must(err)
		if second.Job == first || second.Existed {
			t.Errorf("after the cancellation: %+v", second)
		}
		d, err := jm.Get(t.Context(), "job")
		w.must(err)
		if d.Job != second.Job {
			t.Errorf("the name finds %s, want the newest", d.Job)
		}
		_, err = jm.Get(t.Context(), "nobody")
		w.wantError(err, rpc.CodeNotFound, "nobody")
		time.Sleep(time.Second)
	})
}

func TestSilentTaskManagerIsLostAndItsTasksMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		silent := f.join(jm, 1)
		id := w.submit(jm, "job", checkpointed, "parallelism.default=2")
		w.await(jm, "job", rpc.JobRunning)
		w.awaitCheckpoint(jm, "job", 2)
		f.silence()
		f.join(jm, 2).live(w.hearts())
		time.Sleep(13 * time.Second)
		if err := silent.closedBy(); err == nil || !strings.Contains(err.Error(), "heartbeat") {
			t.Errorf("the silent session was closed by %v", err)
		}
		d := w.await(jm, "job", rpc.JobRunning)
		if d.Restarts != 1 || !strings.HasPrefix(d.Tasks[0].TaskManager, "host2/") || !strings.HasPrefix(d.RestoredFrom, "checkpoint") {
			t.Errorf("restarts %d, at %s, from %q", d.Restarts, d.Tasks[0].TaskManager, d.RestoredFrom)
		}
		last := f.deployments()[len(f.deployments())-1]
		if last.Attempt.N != 2 || last.Attempt.Job != id || last.RestoredFrom < 2 || len(last.Restore) == 0 || last.Splits != nil {
			t.Errorf("last deployment: %s restores %d with %d states, splits %v", last.Attempt, last.RestoredFrom, len(last.Restore), last.Splits)
		}
	})
}

func TestTaskFailureRestartsFromTheLatestCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		id := w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		w.awaitCheckpoint(jm, "job", 2)
		f.fail(id, 1, 0, &weir.Failure{Message: "boom"})
		w.await(jm, "job", rpc.JobRestarting)
		d := w.await(jm, "job", rpc.JobRunning)
		list, err := jm.Checkpoints(t.Context(), "job")
		w.must(err)
		if d.Restarts != 1 || list.Restored < 2 {
			t.Errorf("%d restarts, restored %d", d.Restarts, list.Restored)
		}
		w.awaitCheckpoint(jm, "job", list.Restored+1)
	})
}

func TestBrokenSessionLosesItsTaskManagerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		tm := f.join(jm, 1)
		w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		tm.kill()
		synctest.Wait()
		d, err := jm.Get(t.Context(), "job")
		w.must(err)
		if d.Status != rpc.JobRestarting || !strings.Contains(d.Detail, "connection reset") {
			t.Errorf("%s: %q", d.Status, d.Detail)
		}
		time.Sleep(2 * time.Second)
		if d, _ = jm.Get(t.Context(), "job"); !strings.Contains(d.Detail, "no TaskManager is registered") {
			t.Errorf("%s: %q", d.Status, d.Detail)
		}
		f.join(jm, 1, func(r *rpc.Register) { r.Incarnation = 2 }).live(w.hearts())
		w.await(jm, "job", rpc.JobRunning)
	})
}

func TestJobsSurviveTheJobManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		old := f.join(jm, 1)
		id := w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		c := w.awaitCheckpoint(jm, "job", 2)
		w.must(jm.Stop(t.Context()))
		if err := old.closedBy(); err == nil {
			t.Error("the session outlived the JobManager")
		}

		next := w.manager()
		zombies := f.deployments()
		tm := f.join(next, 1, func(r *rpc.Register) {
			for _, d := range zombies {
				r.Running = append(r.Running, d.Attempt)
			}
		})
		tm.live(w.hearts())
		d := w.await(next, id.String(), rpc.JobRunning)
		if d.RequestID != "request-job" || d.Params == nil || len(d.Tasks) != 2 {
			t.Errorf("detail after the restart: %+v", d)
		}
		cancelled := 0
		for _, m := range tm.messages() {
			if x, ok := m.(rpc.Cancel); ok && x.Attempt.Epoch < d.Tasks[0].Attempt.Epoch {
				cancelled++
			}
		}
		if cancelled != len(zombies) {
			t.Errorf("%d tasks of the older epoch were cancelled, want %d", cancelled, len(zombies))
		}
		last := f.deployments()[len(f.deployments())-1]
		if last.RestoredFrom < c.ID || last.Attempt.N != 1 || last.Attempt.Epoch <= zombies[0].Attempt.Epoch {
			t.Errorf("%s resumes from %d, want at least %d", last.Attempt, last.RestoredFrom, c.ID)
		}
		if after := w.awaitCheckpoint(next, "job", c.ID+1); after.ID <= c.ID {
			t.Errorf("checkpoint ids went back to %d", after.ID)
		}
	})
}

func TestEndedJobsAreListedByTheNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		w.awaitCheckpoint(jm, "job", 1)
		w.must(jm.Cancel(t.Context(), "job"))
		w.await(jm, "job", rpc.JobCanceled)
		w.must(jm.Stop(t.Context()))
		d, err := w.manager().Get(t.Context(), "job")
		w.must(err)
		if d.Status != rpc.JobCanceled || d.Ended.IsZero() || d.JobSummary.Tasks != 2 || d.LastCheckpoint < 1 || len(d.Graph.Vertices) != 2 {
			t.Errorf("%+v", d)
		}
	})
}

func TestNotLeaderNamesTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		leader, standby := w.manager(), w.candidate()
		synctest.Wait()
		for range 2 { // the first Accept may not know yet
			_, err := standby.Accept(t.Context())
			w.wantError(err, rpc.CodeNotLeader)
			synctest.Wait()
		}
		_, err := standby.Accept(t.Context())
		w.wantError(err, rpc.CodeNotLeader, "jm1:1")
		_, err = standby.List(t.Context())
		w.wantError(err, rpc.CodeNotLeader, "jm1:1")
		w.must(leader.Stop(t.Context()))
		w.must(standby.AwaitLeading(t.Context()))
		_, err = standby.List(t.Context())
		w.must(err)
	})
}

func TestLostLeadershipSuspendsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		old := f.join(jm, 1)
		w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		w.awaitCheckpoint(jm, "job", 1)
		before := len(old.messages())
		w.registry.ExpireLeader()
		synctest.Wait()
		if old.closedBy() == nil {
			t.Error("the session outlived the leadership")
		}
		for _, m := range old.messages()[before:] {
			if _, ok := m.(rpc.Cancel); ok {
				t.Error("a suspended job's task was cancelled")
			}
		}
		w.must(jm.AwaitLeading(t.Context()))
		f.join(jm, 1).live(w.hearts())
		w.await(jm, "job", rpc.JobRunning)
		w.awaitCheckpoint(jm, "job", 2)
	})
}

func TestOvertakenLeaderStopsWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		paused, f := w.manager(), w.fleet()
		f.join(paused, 1).live(w.hearts())
		w.submit(paused, "job", checkpointed)
		w.await(paused, "job", rpc.JobRunning)
		c := w.awaitCheckpoint(paused, "job", 1)
		w.registry.OvertakeLeader() // it does not know
		next := w.manager()
		time.Sleep(5 * time.Second)
		if _, err := paused.List(t.Context()); rpc.CodeOf(err) != rpc.CodeNotLeader {
			t.Errorf("the overtaken leader answers %v", err)
		}
		f.join(next, 1, func(r *rpc.Register) { r.Incarnation = 2 }).live(w.hearts())
		w.await(next, "job", rpc.JobRunning)
		w.awaitCheckpoint(next, "job", c.ID+1)
	})
}

func TestJobWaitsForSlotsSaysSoAndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		w.submit(jm, "wide", "parallelism.default=3", "slot.request.timeout=30s")
		time.Sleep(time.Second)
		d, err := jm.Get(t.Context(), "wide")
		w.must(err)
		if d.Status != rpc.JobCreated || !strings.Contains(d.Detail, "needs 3 more slots, 2 are free") {
			t.Errorf("%s: %q", d.Status, d.Detail)
		}
		d = w.await(jm, "wide", rpc.JobFailed)
		if !strings.Contains(d.Detail, "no slots within 30s") {
			t.Errorf("detail %q", d.Detail)
		}
		w.submit(jm, "narrow", "parallelism.default=2")
		w.await(jm, "narrow", rpc.JobRunning)
	})
}

func TestJobRunsOnlyWhereItsCodeIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1, func(r *rpc.Register) { r.CodeID = "other" }).live(w.hearts())
		w.submit(jm, "job")
		time.Sleep(time.Second)
		d, err := jm.Get(t.Context(), "job")
		w.must(err)
		if !strings.Contains(d.Detail, "code id") {
			t.Errorf("detail %q", d.Detail)
		}
		f.join(jm, 2).live(w.hearts())
		d = w.await(jm, "job", rpc.JobRunning)
		if !strings.HasPrefix(d.Tasks[0].TaskManager, "host2/") {
			t.Errorf("runs at %s", d.Tasks[0].TaskManager)
		}
		info, err := jm.Cluster(t.Context())
		w.must(err)
		if len(info.TaskManagers) != 2 || info.TaskManagers[0].FreeSlots != 2 || info.TaskManagers[1].FreeSlots != 1 || info.Entrypoints[0] != "demo" {
			t.Errorf("cluster: %+v", info)
		}
	})
}

func TestAnotherProcessTakesItsPredecessorsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		old := f.join(jm, 1)
		w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		f.join(jm, 1, func(r *rpc.Register) { r.Incarnation = 2 }).live(w.hearts())
		if old.closedBy() == nil {
			t.Error("the old session is still open")
		}
		d := w.await(jm, "job", rpc.JobRestarting)
		d = w.await(jm, "job", rpc.JobRunning)
		if d.Restarts != 1 {
			t.Errorf("%d restarts", d.Restarts)
		}
	})
}

func TestBadEnumeratorHarmsItsJobOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		hearts := w.hearts()
		f.join(jm, 1).live(hearts)
		f.join(jm, 2).live(hearts)
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		set := func(e func() operator.Enumerator) {
			w.catalog.mu.Lock()
			defer w.catalog.mu.Unlock()
			w.catalog.mu.enumerator = e
		}
		set(func() operator.Enumerator { return &testEnumerator{hang: release} })
		w.submit(jm, "hangs")
		time.Sleep(time.Second)
		set(func() operator.Enumerator { return &testEnumerator{hangAt: release} })
		w.submit(jm, "hangs-at-snapshots", checkpointed, "execution.checkpointing.timeout=2s")
		w.await(jm, "hangs-at-snapshots", rpc.JobRunning)
		set(func() operator.Enumerator { return &testEnumerator{panicking: true} })
		w.submit(jm, "panics")
		d := w.await(jm, "panics", rpc.JobFailed)
		if d.Failure == nil || d.Failure.Operator != "src" || !strings.Contains(d.Failure.Message, "the enumerator is broken") || d.Failure.Stack == "" {
			t.Errorf("failure: %+v", d.Failure)
		}
		set(func() operator.Enumerator { return &testEnumerator{fails: errors.New("no such topic")} })
		w.submit(jm, "fails")
		d = w.await(jm, "fails", rpc.JobFailed)
		if f := d.Failure; f == nil || f.Operator != "src" || f.Message != "start the enumerator: no such topic" || !strings.HasPrefix(f.Stack, "error returned by a method of *jobmanager.testEnumerator") {
			t.Errorf("failure: %+v", d.Failure)
		}
		set(func() operator.Enumerator { return &testEnumerator{bulk: operator.MaxEnumeratorState} })
		w.submit(jm, "bulky", checkpointed)
		w.awaitCheckpoint(jm, "bulky", 1)
		w.must(jm.Cancel(t.Context(), "bulky"))
		w.await(jm, "bulky", rpc.JobCanceled)
		set(func() operator.Enumerator { return &testEnumerator{bulk: operator.MaxEnumeratorState + 1} })
		w.submit(jm, "too-bulky", checkpointed)
		d = w.await(jm, "too-bulky", rpc.JobRestarting)
		if f := d.Failure; f == nil || f.Operator != "src" || !strings.Contains(f.Message, "its state is 16777217 bytes, at most 16777216 are allowed") {
			t.Errorf("failure: %+v", d.Failure)
		}
		set(nil)
		w.submit(jm, "good", checkpointed)
		w.await(jm, "good", rpc.JobRunning)
		w.awaitCheckpoint(jm, "good", 2)
		if d := w.await(jm, "hangs", rpc.JobFailed); !strings.Contains(d.Detail, "did not start in time") {
			t.Errorf("detail %q", d.Detail)
		}
		list, err := jm.Checkpoints(t.Context(), "hangs-at-snapshots")
		w.must(err)
		if list.Completed != 0 || list.Failed == 0 || list.Recent[len(list.Recent)-1].Reason != weir.CheckpointExpired {
			t.Errorf("checkpoints: %+v", list)
		}
		w.must(jm.Cancel(t.Context(), "hangs-at-snapshots"))
		w.await(jm, "hangs-at-snapshots", rpc.JobCanceled)
	})
}

func TestFailedStorageFailsCheckpointsNotTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		f.silence()
		w.submit(jm, "job", checkpointed, "execution.checkpointing.timeout=1s")
		w.await(jm, "job", rpc.JobRunning)
		time.Sleep(10 * time.Second)
		list, err := jm.Checkpoints(t.Context(), "job")
		w.must(err)
		if list.Failed < 2 || list.Completed != 0 {
			t.Errorf("%d failed, %d completed", list.Failed, list.Completed)
		}
		if w.logs.FilterMessage("checkpoints fail").Len() == 0 {
			t.Error("no alarm")
		}
		w.await(jm, "job", rpc.JobRunning)
	})
}
