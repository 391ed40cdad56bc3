package jobmanager

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// TestInUse: what gc may not touch.
func TestInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		of := func(job weir.JobID) rpc.JobInUse {
			t.Helper()
			use, err := jm.InUse(t.Context())
			w.must(err)
			if use.ClusterID != "test" || use.CheckpointDir != w.blobs.Location() || use.Epoch == 0 {
				t.Errorf("%+v", use)
			}
			at := slices.IndexFunc(use.Jobs, func(j rpc.JobInUse) bool { return j.Job == job })
			if at < 0 {
				t.Fatalf("no job %s in %+v", job, use.Jobs)
			}
			return use.Jobs[at]
		}
		want := func(what string, got rpc.JobInUse, metadata []string, pending ...weir.CheckpointID) {
			t.Helper()
			if !slices.Equal(got.Metadata, metadata) || !slices.Equal(got.Pending, pending) || got.Unknown != "" {
				t.Errorf("%s: %+v; want %q and %v under way", what, got, metadata, pending)
			}
		}
		c := w.ended(jm, "first", "execution.checkpointing.num-retained=1")
		first, err := jm.Get(t.Context(), "first")
		w.must(err)
		retained := []string{snapshotmeta.MetadataName(first.Job, c.ID)}
		want("a job that has ended, and whose checkpoint is retained", of(first.Job), retained)

		// A job that has none of its own yet needs what it was started from.
		f.silence()
		second, err := w.from(jm, "second", c.Path, checkpointed)
		w.must(err)
		w.await(jm, "second", rpc.JobRunning)
		time.Sleep(3 * time.Second)
		want("a job that has no checkpoint of its own", of(second), retained, c.ID+1)

		// One whose policy does not retain needs nothing any more.
		f.mu.Lock()
		f.mu.mute = false
		f.mu.Unlock()
		third := w.submit(jm, "third", checkpointed, "execution.checkpointing.externalized-checkpoint-retention=DELETE_ON_CANCELLATION")
		w.awaitCheckpoint(jm, "third", 2)
		w.must(jm.Cancel(t.Context(), "third"))
		w.await(jm, "third", rpc.JobCanceled)
		want("a job whose checkpoints are deleted", of(third), nil)

		// A body that cannot be read: nobody knows what a job that lives needs.
		fourth := w.submit(jm, "fourth", "execution.checkpointing.interval=1h")
		w.await(jm, "fourth", rpc.JobRunning)
		w.must(w.blobs.Delete(t.Context(), jobmaster.BodyName(fourth)))
		if got := of(fourth); got.Unknown == "" {
			t.Errorf("without its body: %+v", got)
		}
	})
}

// TestOvertakenLeaderDoesNotSayWhatIsInUse, though it does not know that it is one.
func TestOvertakenLeaderDoesNotSayWhatIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm := w.manager()
		if _, err := jm.InUse(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.registry.OvertakeLeader()
		if _, err := jm.InUse(t.Context()); !errors.Is(err, rpc.ErrNotLeader) {
			t.Errorf("overtaken: %v", err)
		}
	})
}
