package store_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/snapshotmeta"
)

func claimOf(cluster string, n byte) store.Claim {
	return store.Claim{Cluster: cluster, Job: weir.JobID{n}.String(), At: time.UnixMilli(1_700_000_000_000).UTC()}
}

func TestClaims(t *testing.T) {
	live := func(weir.JobID) (bool, error) { return false, nil }
	over := func(weir.JobID) (bool, error) { return true, nil }
	ours := claimOf("a", 1)

	t.Run("is_exclusive", func(t *testing.T) {
		w := newWorld()
		for range 2 { // the second finds its own
			if err := store.TakeClaim(t.Context(), w.store(), "x/chk-7", ours, live); err != nil {
				t.Fatal(err)
			}
		}
		got, ok, err := store.ReadClaim(t.Context(), w.store(), "x/chk-7")
		if err != nil || !ok || got != ours {
			t.Errorf("claim %+v, %t, %v", got, ok, err)
		}
		var claimed *store.ClaimedError
		for _, other := range []store.Claim{claimOf("b", 1), claimOf("a", 2)} {
			err := store.TakeClaim(t.Context(), w.store(), "x/chk-7", other, live)
			if !errors.As(err, &claimed) || claimed.By != ours || !strings.Contains(err.Error(), `of cluster "a"`) {
				t.Errorf("claim of %+v: %v", other, err)
			}
		}
		if err := store.TakeClaim(t.Context(), w.store(), "x/chk-7", claimOf("b", 1), over); !errors.As(err, &claimed) {
			t.Errorf("another cluster's claim was replaced: %v", err)
		}
	})
	t.Run("of_a_job_that_is_over_is_replaced", func(t *testing.T) {
		w := newWorld()
		if err := store.TakeClaim(t.Context(), w.store(), "x/chk-7", ours, live); err != nil {
			t.Fatal(err)
		}
		next := claimOf("a", 2)
		if err := store.TakeClaim(t.Context(), w.store(), "x/chk-7", next, over); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := store.ReadClaim(t.Context(), w.store(), "x/chk-7"); got != next {
			t.Errorf("claim %+v", got)
		}
		if err := store.DropClaim(t.Context(), w.store(), "x/chk-7", ours); err != nil {
			t.Error(err)
		}
		if _, ok, _ := store.ReadClaim(t.Context(), w.store(), "x/chk-7"); !ok {
			t.Error("somebody else's claim was dropped")
		}
		if err := store.DropClaim(t.Context(), w.store(), "x/chk-7", next); err != nil {
			t.Error(err)
		}
		if _, ok, err := store.ReadClaim(t.Context(), w.store(), "x/chk-7"); ok || err != nil {
			t.Errorf("claim stays: %v", err)
		}
	})
	t.Run("lost_answer_is_success", func(t *testing.T) {
		w := newWorld()
		w.lose = func(op faulty.Op, _ string) error {
			if op == faulty.Commit {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if err := store.TakeClaim(t.Context(), w.store(), "x/chk-7", ours, live); err != nil {
			t.Error(err)
		}
	})
	t.Run("refused_write_is_its_error", func(t *testing.T) {
		w := newWorld()
		w.fault = func(op faulty.Op, _ string) error {
			if op == faulty.Commit {
				return io.ErrShortWrite
			}
			return nil
		}
		wantIs(t, "TakeClaim", store.TakeClaim(t.Context(), w.store(), "x/chk-7", ours, live), io.ErrShortWrite)
	})
	t.Run("damaged_is_nobodys", func(t *testing.T) {
		w := newWorld()
		storetest.Put(t, w.blobs, "x/chk-7/_claim", []byte("weir-claim 1 00000000\n{}"))
		wantIs(t, "TakeClaim", store.TakeClaim(t.Context(), w.store(), "x/chk-7", ours, over), store.ErrBadClaim)
	})
}

func FuzzDecodeClaim(f *testing.F) {
	w := newWorld()
	if err := store.TakeClaim(f.Context(), w.store(), "x", claimOf("a", 1), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(storetest.Get(f, w.blobs, "x/_claim"))
	f.Add([]byte("weir-claim 2 00000000\n{}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := store.DecodeClaim(content)
		if err != nil && !errors.Is(err, store.ErrBadClaim) {
			t.Errorf("%v is no ErrBadClaim", err)
		}
		if _, perr := weir.ParseJobID(c.Job); err == nil && (perr != nil || c.Cluster == "") {
			t.Errorf("%+v was accepted", c)
		}
	})
}

// TestClaimedSnapshotIsDeletedWhereItLies, in another store or another job's directory.
func TestClaimedSnapshotIsDeletedWhereItLies(t *testing.T) {
	put := func(t *testing.T, w *world, to *mem.Store) {
		t.Helper()
		s := snapshot(7, "chk-7/a", "chk-6/old", "shared/s")
		var content bytes.Buffer
		if err := snapshotmeta.Write(&content, s); err != nil {
			t.Fatal(err)
		}
		storetest.Put(t, to, "other/chk-7/_metadata", content.Bytes())
		for _, f := range []string{"other/chk-7/a", "other/chk-7/users.txt", "other/chk-6/old", "other/shared/s"} {
			storetest.Put(t, to, f, []byte("state"))
		}
		if err := store.TakeClaim(t.Context(), to, "other/chk-7", claimOf("a", 1), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, foreign := range []bool{false, true} {
		w := newWorld()
		jobs, _ := w.lead(t)
		chain := w.openChain(t, jobs)
		to, metadata := w.blobs, "other/chk-7/_metadata"
		cleaner := store.NewCleaner(w.store(), job, chain)
		if foreign {
			to = mem.New()
			metadata = snapshotmeta.Foreign("elsewhere", metadata)
			cleaner.OpenStore = func(location string) (blobstore.Store, error) {
				if location != "elsewhere" {
					t.Errorf("opened %q", location)
				}
				return to, nil
			}
		}
		put(t, w, to)
		if _, err := chain.Add(t.Context(), store.Completed{Checkpoint: 7, Metadata: metadata}); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "discard of a link", cleaner.DiscardAt(t.Context(), metadata), store.ErrLinked)
		// The next checkpoint still names a file of it, as an incremental one would.
		w.complete(t, chain, 8, file(8, 1))
		if err := chain.Remove(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := cleaner.DiscardAt(t.Context(), metadata); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"other/chk-6/old", "other/chk-7/users.txt", "other/shared/s"}
		if !foreign {
			want = append([]string{job.String() + "/" + file(8, 1), job.String() + "/" + meta(8)}, want...)
			slices.Sort(want)
		}
		if got := storetest.Names(t, to, ""); !slices.Equal(got, want) {
			t.Errorf("foreign %t: left %q, want %q", foreign, got, want)
		}
	}
}

// TestWhatOthersHaveClaimedIsLeftToThem when its link goes, and when the job has ended.
func TestWhatOthersHaveClaimedIsLeftToThem(t *testing.T) {
	w := newWorld()
	jobs, _ := w.lead(t)
	chain := w.openChain(t, jobs)
	cleaner := store.NewCleaner(w.store(), job, chain)
	for id := weir.CheckpointID(1); id <= 3; id++ {
		w.complete(t, chain, id, file(id, 1))
	}
	if err := store.TakeClaim(t.Context(), w.blobs, job.String()+"/chk-1", claimOf("other", 9), nil); err != nil {
		t.Fatal(err)
	}
	for id := weir.CheckpointID(1); id <= 2; id++ {
		if err := chain.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := cleaner.Discard(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	w.wantFiles(t, "chk-1/_claim", meta(1), file(1, 1), meta(3), file(3, 1))
	chain.Drop()
	storetest.Put(t, w.blobs, job.String()+"/job.json", nil)
	if err := cleaner.DiscardJob(t.Context(), job.String()+"/job.json"); err != nil {
		t.Fatal(err)
	}
	w.wantFiles(t, "chk-1/_claim", meta(1), file(1, 1), "job.json")
}
