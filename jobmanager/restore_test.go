package jobmanager

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

const claimed = "execution.state-recovery.claim-mode=CLAIM"

// ended runs a job of this name until a checkpoint, cancels it, and returns the checkpoint.
func (w *world) ended(jm *JobManager, name string, options ...string) rpc.CheckpointInfo {
	w.t.Helper()
	w.submit(jm, name, append(options, checkpointed)...)
	w.awaitCheckpoint(jm, name, 4)
	w.must(jm.Cancel(w.t.Context(), name))
	w.await(jm, name, rpc.JobCanceled)
	return w.awaitCheckpoint(jm, name, 4)
}

// from submits a job that starts from something.
func (w *world) from(jm *JobManager, name, from string, options ...string) (weir.JobID, error) {
	r := request(name, options...)
	r.RequestID += fmt.Sprint(time.Now().UnixNano())
	r.From = from
	reply, err := jm.Submit(w.t.Context(), r)
	return reply.Job, err
}

// triggered are the kinds of the checkpoints that a job's tasks were asked for, by id.
func (f *fleet) triggered(job weir.JobID, tm *fakeTM) map[weir.CheckpointID]weir.SnapshotKind {
	kinds := make(map[weir.CheckpointID]weir.SnapshotKind)
	for _, m := range tm.messages() {
		if x, ok := m.(rpc.TriggerCheckpoint); ok && x.Attempt.Job == job {
			kinds[x.Barrier.ID] = x.Barrier.Options.Kind
		}
	}
	return kinds
}

func (w *world) blobsBelow(dir string) []string { return storetest.Names(w.t, w.blobs, dir+"/") }

func TestRestore(t *testing.T) {
	t.Run("O-RST-02_unclaimed_snapshot_makes_the_first_checkpoint_full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			jm, f := w.manager(), w.fleet()
			tm := f.join(jm, 1)
			tm.live(w.hearts())
			c := w.ended(jm, "first")
			f.silence() // the first attempt is declined by nobody: it expires
			job, err := w.from(jm, "second", c.Path, checkpointed, "execution.checkpointing.timeout=2s")
			w.must(err)
			w.await(jm, "second", rpc.JobRunning)
			time.Sleep(5 * time.Second)
			f.mu.Lock()
			f.mu.mute = false
			f.mu.Unlock()
			w.awaitCheckpoint(jm, "second", c.ID+5)
			list, err := jm.Checkpoints(t.Context(), "second")
			w.must(err)
			first := weir.CheckpointID(0) // that completed
			for _, r := range list.Recent {
				if r.Status == rpc.CheckpointCompleted {
					first = r.ID
				}
			}
			kinds := f.triggered(job, tm)
			for id, kind := range kinds {
				if (kind == weir.FullCheckpoint) != (id <= first) {
					t.Errorf("%d is the first complete one, and %d was a %s", first, id, kind)
				}
			}
			if first < c.ID+2 || kinds[first+1] != weir.Checkpoint {
				t.Errorf("from %d, first %d: asked for %v", c.ID, first, kinds)
			}
		})
	})
	t.Run("O-RST-03_claimed_snapshot_is_deleted_when_subsumed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			jm, f := w.manager(), w.fleet()
			f.join(jm, 1).live(w.hearts())
			c := w.ended(jm, "first")
			dir := strings.TrimPrefix(c.Path, w.blobs.Location()+"/")
			job, err := w.from(jm, "second", c.Path, checkpointed, claimed, "execution.checkpointing.num-retained=1")
			w.must(err)
			w.await(jm, "second", rpc.JobRunning)
			if got := w.blobsBelow(dir); !slices.Contains(got, dir+"/"+store.ClaimFile) {
				t.Errorf("no claim among %q", got)
			}
			w.awaitCheckpoint(jm, "second", c.ID+1)
			time.Sleep(time.Second)
			if got := w.blobsBelow(dir); len(got) != 0 {
				t.Errorf("of the claimed snapshot %q are left", got)
			}
			links, err := ha.NewJobStore(w.registry.Connect("test", ha.Hook{}), 0).Links(t.Context(), job)
			w.must(err)
			if len(links) != 1 || links[0].Number < 2 {
				t.Errorf("links %+v", links)
			}
			// The job that took it does not name it any more.
			use, err := jm.InUse(t.Context())
			w.must(err)
			for _, j := range use.Jobs {
				if slices.Contains(j.Metadata, dir+"/"+snapshotmeta.MetadataFile) {
					t.Errorf("job %s still needs it", j.Name)
				}
			}
			_, err = w.from(jm, "third", links[0].Metadata, claimed)
			w.wantError(err, rpc.CodeFailedPrecondition, "its job", "runs and needs it")
		})
	})
}

func TestClaimedSnapshotSurvivesRestartsUntilItIsSubsumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1)
		c := w.ended(jm, "first")
		dir := strings.TrimPrefix(c.Path, w.blobs.Location()+"/")
		_, err := w.from(jm, "second", c.Path, "execution.checkpointing.interval=1h", claimed)
		w.must(err)
		w.await(jm, "second", rpc.JobRunning)
		// Nobody else gets it: not another job of the cluster while this one lives.
		_, err = w.from(jm, "third", c.Path, checkpointed, claimed)
		w.wantError(err, rpc.CodeFailedPrecondition, "claimed by job", "_claim")
		_, err = w.from(jm, "fourth", c.Path, "execution.checkpointing.interval=1h") // NO_CLAIM only reads
		w.must(err)
		w.must(jm.Stop(t.Context()))
		next := w.manager()
		f.join(next, 1, func(r *rpc.Register) { r.Incarnation = 2 })
		d := w.await(next, "second", rpc.JobRunning)
		if !strings.Contains(d.RestoreReason, "no newer checkpoint") || !strings.Contains(d.RestoreReason, "claim it") {
			t.Errorf("why: %q", d.RestoreReason)
		}
		if _, err := snapshotmeta.Open(t.Context(), w.blobs, dir); err != nil {
			t.Error(err)
		}
		// When its job has ended, the next one of the cluster takes the claim over.
		w.must(next.Cancel(t.Context(), "second"))
		w.await(next, "second", rpc.JobCanceled)
		job, err := w.from(next, "third", c.Path, "execution.checkpointing.interval=1h", claimed)
		w.must(err)
		got, _, err := store.ReadClaim(t.Context(), w.blobs, dir)
		w.must(err)
		if got.Job != job.String() || got.Cluster != "test" {
			t.Errorf("claim %+v", got)
		}
	})
}

func TestSnapshotThatAnotherClusterHasClaimedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		c := w.ended(jm, "first")
		dir := strings.TrimPrefix(c.Path, w.blobs.Location()+"/")
		w.must(store.TakeClaim(t.Context(), w.blobs, dir, store.Claim{Cluster: "other", Job: weir.JobID{9}.String()}, nil))
		_, err := w.from(jm, "second", c.Path, checkpointed, claimed)
		w.wantError(err, rpc.CodeFailedPrecondition, `cluster "other"`)
		if list, err := jm.List(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("jobs %v, %v", list, err)
		}
		_, err = w.from(jm, "second", "none", claimed)
		w.wantError(err, rpc.CodeInvalidArgument, "CLAIM needs a snapshot")
	})
}

// TestStartFromTheLatest: field report B87.
func TestStartFromTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		_, err := w.from(jm, "job", "latest", checkpointed)
		w.wantError(err, rpc.CodeNotFound, `no job was called "job"`)
		c := w.ended(jm, "job")
		_, err = w.from(jm, "job", "latest", checkpointed)
		w.must(err)
		d := w.await(jm, "job", rpc.JobRunning)
		if want := fmt.Sprintf("checkpoint %d of job", c.ID); !strings.Contains(d.RestoredFrom, want) || !strings.Contains(d.RestoreReason, "newest checkpoint of job") {
			t.Errorf("restored from %q because %q, want %q", d.RestoredFrom, d.RestoreReason, want)
		}
		w.awaitCheckpoint(jm, "job", c.ID+1)
		w.must(jm.Cancel(t.Context(), "job"))
		w.await(jm, "job", rpc.JobCanceled)
		newest := w.awaitCheckpoint(jm, "job", c.ID+1)
		name := path.Join(strings.TrimPrefix(newest.Path, w.blobs.Location()+"/"), snapshotmeta.MetadataFile)
		w.must(w.blobs.Delete(t.Context(), name))
		_, err = w.from(jm, "job", "latest", checkpointed)
		w.wantError(err, rpc.CodeNotFound, "no snapshot")
		// Nothing, on purpose.
		job, err := w.from(jm, "job", "none", checkpointed)
		w.must(err)
		d = w.await(jm, "job", rpc.JobRunning)
		if d.Job != job || d.RestoredFrom != "" || d.RestoreReason != "it was to start from nothing" {
			t.Errorf("restored from %q because %q", d.RestoredFrom, d.RestoreReason)
		}
		w.must(jm.Cancel(t.Context(), "job"))
		w.await(jm, "job", rpc.JobCanceled)
		// A job that never completed one.
		w.submit(jm, "other", "execution.checkpointing.interval=1h")
		w.await(jm, "other", rpc.JobRunning)
		w.must(jm.Cancel(t.Context(), "other"))
		w.await(jm, "other", rpc.JobCanceled)
		_, err = w.from(jm, "other", "latest")
		w.wantError(err, rpc.CodeNotFound, "has none")
		r := request("other", "execution.state-recovery.path=none")
		r.From, r.RequestID = "latest", "contradicts"
		_, err = jm.Submit(t.Context(), r)
		w.wantError(err, rpc.CodeInvalidArgument, "contradicts")
	})
}

// TestRetentionPolicies: what is left when a job has ended (behaviour §7).
func TestRetentionPolicies(t *testing.T) {
	const key = "execution.checkpointing.externalized-checkpoint-retention="
	for _, c := range []struct {
		policy       string
		cancel, fail bool // whether checkpoints stay
	}{
		{"", true, true},
		{key + "RETAIN_ON_CANCELLATION", true, true},
		{key + "DELETE_ON_CANCELLATION", false, true},
		{key + "NO_EXTERNALIZED_CHECKPOINTS", false, false},
	} {
		t.Run(c.policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				jm, f := w.manager(), w.fleet()
				f.join(jm, 1).live(w.hearts())
				for _, fails := range []bool{false, true} {
					name, stays, want := "cancelled", c.cancel, rpc.JobCanceled
					options := []string{checkpointed, "restart-strategy.type=none"}
					if fails {
						name, stays, want = "failed", c.fail, rpc.JobFailed
					}
					if c.policy != "" {
						options = append(options, c.policy)
					}
					job := w.submit(jm, name, options...)
					w.awaitCheckpoint(jm, name, 3)
					if fails {
						f.fail(job, 1, 0, &weir.Failure{Message: "broken", Subtask: -1})
					} else {
						w.must(jm.Cancel(t.Context(), name))
					}
					w.await(jm, name, want)
					time.Sleep(time.Second)
					left := storetest.Names(t, w.blobs, snapshotmeta.JobDir(job)+"/chk-")
					links, err := ha.NewJobStore(w.registry.Connect("test", ha.Hook{}), 0).Links(t.Context(), job)
					w.must(err)
					if (len(left) > 0) != stays || (len(links) > 0) != stays {
						t.Errorf("%s: %d links and %q are left, want some: %t", name, len(links), left, stays)
					}
					if _, err := jm.Get(t.Context(), name); err != nil {
						t.Errorf("%s is not shown any more: %v", name, err)
					}
				}
			})
		})
	}
}

// TestAllowDroppedStateHoldsAfterARestart: field report B89.
func TestAllowDroppedStateHoldsAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1)
		c := w.ended(jm, "first")
		r := request("second", "execution.checkpointing.interval=1h")
		r.From, r.Params = c.Path, map[string]string{"count": "renamed"}
		_, err := jm.Submit(t.Context(), r)
		w.wantError(err, rpc.CodeInvalidArgument, "no operator of that name")
		r.Options["execution.state-recovery.ignore-unclaimed-state"] = "true"
		_, err = jm.Submit(t.Context(), r)
		w.must(err)
		w.await(jm, "second", rpc.JobRunning)
		w.must(jm.Stop(t.Context()))
		next := w.manager()
		f.join(next, 1, func(r *rpc.Register) { r.Incarnation = 2 })
		w.await(next, "second", rpc.JobRunning)
	})
}
