package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/snapshotmeta"
)

var (
	job      = weir.JobID{1}
	operator = weir.OperatorIDOf("count")
)

// world is one JobManager's view: the faults are switched on by the tests.
type world struct {
	registry *ha.Memory
	blobs    *mem.Store
	fault    func(op faulty.Op, name string) error // before
	lose     func(op faulty.Op, name string) error // after
	loseTxn  bool
}

func newWorld() *world { return &world{registry: ha.NewMemory(0), blobs: mem.New()} }

func (w *world) store() blobstore.Store {
	half := func(f *func(faulty.Op, string) error) func(context.Context, faulty.Op, string) error {
		return func(_ context.Context, op faulty.Op, name string) error {
			if *f == nil {
				return nil
			}
			return (*f)(op, name)
		}
	}
	return faulty.New(w.blobs, faulty.Hook{Before: half(&w.fault), After: half(&w.lose)})
}

// lead makes a new JobManager lead; the job is submitted by the first.
func (w *world) lead(t *testing.T) (*ha.JobStore, ha.Leadership) {
	t.Helper()
	c := w.registry.Connect("jm", ha.Hook{After: func(_ context.Context, c ha.Call) error {
		if w.loseTxn && c.Method == "txn" {
			return errors.New("lost")
		}
		return nil
	}})
	l, err := c.Campaign(t.Context(), ha.Candidate{ID: "jm"})
	if err != nil {
		t.Fatal(err)
	}
	jobs := ha.NewJobStore(c, l.Epoch())
	if _, _, err := jobs.Submit(t.Context(), ha.JobRecord{Job: job, Name: "job", RequestID: "r"}, ha.JobStatus{State: "running"}); err != nil {
		t.Fatal(err)
	}
	return jobs, l
}

func (w *world) openChain(t *testing.T, jobs *ha.JobStore) *store.Chain {
	t.Helper()
	c, err := store.OpenChain(t.Context(), jobs, job)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func file(id weir.CheckpointID, attempt int32) string {
	return snapshotmeta.StateFileName(snapshotmeta.Dir(id), weir.AttemptID{Epoch: 1, N: attempt})
}

// snapshot is checkpoint id, whose state lies in these files.
func snapshot(id weir.CheckpointID, files ...string) *snapshotmeta.Snapshot {
	s := snapshotmeta.New(snapshotmeta.Header{
		Job: job, Checkpoint: id, Triggered: time.UnixMilli(1), Completed: time.UnixMilli(2),
		Vertices: []snapshotmeta.Vertex{{Name: "count", Parallelism: 8, MaxParallelism: 128, Operators: []snapshotmeta.OperatorRef{{ID: operator, Name: "count"}}}},
	})
	for i, f := range files {
		if err := s.AddTask(weir.SubtaskID{Subtask: int32(i)}, taskState(f)); err != nil {
			panic(err)
		}
	}
	return s
}

func taskState(files ...string) weir.TaskStateSnapshot {
	op := weir.OperatorSubtaskState{Operator: operator, Name: "count"}
	for _, f := range files {
		op.Elements = append(op.Elements, weir.StateHandle{File: f, Length: 5})
	}
	return weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{op}}
}

func (w *world) putFiles(t *testing.T, files ...string) {
	t.Helper()
	for _, f := range files {
		storetest.Put(t, w.blobs, job.String()+"/"+f, []byte("state"))
	}
}

// complete writes and links checkpoint id with these files, which it makes.
func (w *world) complete(t *testing.T, chain *store.Chain, id weir.CheckpointID, files ...string) {
	t.Helper()
	for _, f := range files {
		if !slices.Contains(storetest.Names(t, w.blobs, ""), job.String()+"/"+f) {
			w.putFiles(t, f)
		}
	}
	m, err := store.NewMetadataStore(w.store()).Write(t.Context(), snapshot(id, files...))
	if err != nil {
		t.Fatal(err)
	}
	permit, err := chain.Add(t.Context(), store.Completed{Checkpoint: id, Metadata: m.Name, Bytes: 5})
	if err != nil || permit.ID() != id {
		t.Fatalf("add checkpoint %d: permit %d, %v", id, permit.ID(), err)
	}
}

func (w *world) wantFiles(t *testing.T, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = job.String() + "/" + want[i]
	}
	slices.Sort(want)
	if got := storetest.Names(t, w.blobs, ""); !slices.Equal(got, want) {
		t.Errorf("files:\n%q\nwant:\n%q", got, want)
	}
}

func meta(id weir.CheckpointID) string { return fmt.Sprintf("chk-%d/_metadata", id) }

func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func TestMetadataIsWrittenReadBackAndRead(t *testing.T) {
	w := newWorld()
	ms := store.NewMetadataStore(w.store())
	s := snapshot(7, file(7, 1))
	m, err := ms.Write(t.Context(), s)
	if err != nil || m.Name != snapshotmeta.MetadataName(job, 7) || m.Bytes == 0 {
		t.Fatalf("Write: %+v, %v", m, err)
	}
	got, err := ms.Read(t.Context(), m.Name)
	if err != nil || got.Bytes() != s.Bytes() || got.Header.Checkpoint != 7 {
		t.Errorf("Read: %+v, %v", got, err)
	}
	again, err := ms.Write(t.Context(), s)
	if err != nil || again != m {
		t.Errorf("Write again: %+v, %v", again, err)
	}
	_, err = ms.Write(t.Context(), snapshot(7, file(7, 2)))
	wantIs(t, "Write of other content", err, store.ErrExists)
}

func TestLostAnswerOfCommitIsSuccess(t *testing.T) {
	w := newWorld()
	w.lose = func(op faulty.Op, _ string) error {
		if op == faulty.Commit {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	if _, err := store.NewMetadataStore(w.store()).Write(t.Context(), snapshot(7)); err != nil {
		t.Fatal(err)
	}
}

func TestRefusedWriteIsItsErrorAndLeavesNothing(t *testing.T) {
	for _, bad := range []faulty.Op{faulty.Create, faulty.Write, faulty.Commit} {
		w := newWorld()
		w.fault = func(op faulty.Op, _ string) error {
			if op == bad {
				return io.ErrShortWrite
			}
			return nil
		}
		_, err := store.NewMetadataStore(w.store()).Write(t.Context(), snapshot(7))
		wantIs(t, string(bad), err, io.ErrShortWrite)
		w.wantFiles(t)
	}
}

func TestUnreadableAnswerIsAskedForUntilKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		failures := 5
		w.fault = func(op faulty.Op, _ string) error {
			if op == faulty.Open && failures > 0 {
				failures--
				return io.ErrNoProgress
			}
			return nil
		}
		if _, err := store.NewMetadataStore(w.store()).Write(t.Context(), snapshot(7)); err != nil || failures != 0 {
			t.Fatalf("Write: %v, %d failures left", err, failures)
		}
		failures = 1000
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := store.NewMetadataStore(w.store()).Write(ctx, snapshot(8))
		wantIs(t, "Write", err, ha.ErrDoubtful)
		wantIs(t, "Write", err, context.DeadlineExceeded)
	})
}

func TestBytesThatCannotBeReadBackAreNotLinked(t *testing.T) {
	w := newWorld()
	w.lose = func(op faulty.Op, name string) error {
		if op == faulty.Commit {
			w.blobs.Corrupt(name, []byte("other bytes"))
		}
		return nil
	}
	_, err := store.NewMetadataStore(w.store()).Write(t.Context(), snapshot(7))
	wantIs(t, "Write", err, store.ErrDiffers)
}

func TestChainIsWhatALaterLeaderReads(t *testing.T) {
	w := newWorld()
	jobs, l := w.lead(t)
	chain := w.openChain(t, jobs)
	if _, ok := chain.Newest(); ok {
		t.Error("new chain has a link")
	}
	w.complete(t, chain, 1, file(1, 1))
	w.complete(t, chain, 2, file(2, 1))
	w.complete(t, chain, 5, file(5, 1))
	if err := chain.Remove(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	wantIs(t, "remove the newest", chain.Remove(t.Context(), 5), ha.ErrNewestLink)
	if err := chain.Remove(t.Context(), 2); err != nil {
		t.Errorf("remove again: %v", err)
	}
	newest, ok := chain.Newest()
	if !ok || newest.Checkpoint != 5 || newest.Number != 3 {
		t.Errorf("newest %+v", newest)
	}
	if err := l.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	later, _ := w.lead(t)
	if got := w.openChain(t, later).Links(); !reflect.DeepEqual(got, chain.Links()) || len(got) != 2 {
		t.Errorf("later leader reads %+v, want %+v", got, chain.Links())
	}
}

func TestAddAgainIsSuccessAndDoubtIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		jobs, _ := w.lead(t)
		chain := w.openChain(t, jobs)
		c := store.Completed{Checkpoint: 1, Metadata: snapshotmeta.MetadataName(job, 1)}
		w.loseTxn = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		_, err := chain.Add(ctx, c)
		wantIs(t, "Add", err, ha.ErrDoubtful)
		if len(chain.Links()) != 0 {
			t.Errorf("links while in doubt: %+v", chain.Links())
		}
		w.loseTxn = false
		for range 2 {
			permit, err := chain.Add(t.Context(), c)
			if err != nil || permit.ID() != 1 {
				t.Errorf("Add again: %d, %v", permit.ID(), err)
			}
		}
		if len(chain.Links()) != 1 {
			t.Errorf("links: %+v", chain.Links())
		}
	})
}

func TestOvertakenLeaderGetsNoPermit(t *testing.T) {
	w := newWorld()
	jobs, _ := w.lead(t)
	chain := w.openChain(t, jobs)
	w.complete(t, chain, 1)
	w.registry.OvertakeLeader()
	later, _ := w.lead(t)
	w.complete(t, w.openChain(t, later), 2)
	permit, err := chain.Add(t.Context(), store.Completed{Checkpoint: 3, Metadata: "m"})
	wantIs(t, "Add", err, ha.ErrNotLeader)
	if permit.ID() != weir.NoCheckpoint {
		t.Errorf("permit for %d", permit.ID())
	}
	wantIs(t, "Remove", chain.Remove(t.Context(), 1), ha.ErrNotLeader)
}

func TestStoreOfCompletedCheckpoints(t *testing.T) {
	t.Run("O-STO-01_link_before_subsumption_before_files", func(t *testing.T) {
		w := newWorld()
		jobs, _ := w.lead(t)
		chain := w.openChain(t, jobs)
		cleaner := store.NewCleaner(w.store(), job, chain)
		w.complete(t, chain, 1, file(1, 1))
		w.complete(t, chain, 2, file(2, 1))
		wantIs(t, "discard of a linked one", cleaner.Discard(t.Context(), 1), store.ErrLinked)
		w.wantFiles(t, meta(1), file(1, 1), meta(2), file(2, 1))
		if err := chain.Remove(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := cleaner.Discard(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		w.wantFiles(t, meta(2), file(2, 1))
	})
	t.Run("O-STO-06_crash_between_metadata_and_link", func(t *testing.T) {
		w := newWorld()
		jobs, l := w.lead(t)
		chain := w.openChain(t, jobs)
		counter := store.NewCheckpointIDCounter(jobs, job)
		var id weir.CheckpointID
		for range 9 {
			var err error
			if id, err = counter.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if id == 8 {
				w.complete(t, chain, 8, file(8, 1))
			}
		}
		w.putFiles(t, file(9, 1))
		if _, err := store.NewMetadataStore(w.store()).Write(t.Context(), snapshot(9, file(9, 1))); err != nil {
			t.Fatal(err)
		}
		if err := l.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		later, _ := w.lead(t)
		newest, _ := w.openChain(t, later).Newest()
		next, err := store.NewCheckpointIDCounter(later, job).Next(t.Context())
		if err != nil || newest.Checkpoint != 8 || next < 10 {
			t.Errorf("newest %d, next id %d, %v", newest.Checkpoint, next, err)
		}
		w.wantFiles(t, meta(8), file(8, 1), meta(9), file(9, 1))
	})
}

func TestCounterSkipsTheIdsOfAnotherJobsSnapshot(t *testing.T) {
	jobs, _ := newWorld().lead(t)
	counter := store.NewCheckpointIDCounter(jobs, job)
	if err := counter.Skip(t.Context(), 41); err != nil {
		t.Fatal(err)
	}
	if id, err := counter.Next(t.Context()); err != nil || id != 42 {
		t.Errorf("Next: %d, %v", id, err)
	}
}

func TestCleanerKeepsWhatALinkNames(t *testing.T) {
	w := newWorld()
	jobs, _ := w.lead(t)
	chain := w.openChain(t, jobs)
	cleaner := store.NewCleaner(w.store(), job, chain)
	w.complete(t, chain, 1, file(1, 1), file(1, 2), "shared/table")
	w.complete(t, chain, 2, file(1, 2), file(2, 1), "shared/table") // refers to a file of checkpoint 1
	if err := chain.Remove(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := cleaner.Discard(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.wantFiles(t, file(1, 2), meta(2), file(2, 1), "shared/table")

	// State of aborted checkpoints and unknown attempts.
	w.putFiles(t, file(3, 1), file(3, 2), "shared/new")
	foreign := snapshotmeta.Rebase(weir.StateHandle{File: file(3, 2), Length: 5}, "memory", job.String())
	state := taskState(file(3, 1), file(2, 1), "shared/new", "../escape", "absent")
	state.Operators[0].Elements = append(state.Operators[0].Elements, foreign, weir.StateHandle{Inline: []byte("x")})
	if err := cleaner.DiscardHandles(t.Context(), "", state); err != nil {
		t.Fatal(err)
	}
	w.wantFiles(t, file(1, 2), meta(2), file(2, 1), file(3, 2), "shared/table", "shared/new")
}

func TestCleanerDeletesNothingIfItCannotTellWhatIsRetained(t *testing.T) {
	w := newWorld()
	jobs, _ := w.lead(t)
	chain := w.openChain(t, jobs)
	w.complete(t, chain, 1, file(1, 1))
	w.complete(t, chain, 2, file(2, 1))
	if err := chain.Remove(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.blobs.Corrupt(snapshotmeta.MetadataName(job, 2), []byte("damaged"))
	cleaner := store.NewCleaner(w.store(), job, chain)
	wantIs(t, "Discard", cleaner.Discard(t.Context(), 1), snapshotmeta.ErrNotSnapshot)
	wantIs(t, "DiscardHandles", cleaner.DiscardHandles(t.Context(), "", taskState(file(1, 1))), snapshotmeta.ErrNotSnapshot)
	w.wantFiles(t, meta(1), file(1, 1), meta(2), file(2, 1))
}

func TestCleanerLeavesAloneWhatMayBecomeALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		jobs, _ := w.lead(t)
		chain := w.openChain(t, jobs)
		cleaner := store.NewCleaner(w.store(), job, chain)
		w.putFiles(t, file(1, 1), meta(1))
		w.loseTxn = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		_, err := chain.Add(ctx, store.Completed{Checkpoint: 1, Metadata: snapshotmeta.MetadataName(job, 1)})
		wantIs(t, "Add", err, ha.ErrDoubtful)
		wantIs(t, "Discard", cleaner.Discard(t.Context(), 1), store.ErrLinked)
		if err := cleaner.DiscardHandles(t.Context(), "", taskState(file(1, 1))); err != nil {
			t.Fatal(err)
		}
		w.wantFiles(t, file(1, 1), meta(1))
	})
}

func TestCleanerDeletesTheRestWhenOneFileCannotBe(t *testing.T) {
	w := newWorld()
	jobs, _ := w.lead(t)
	chain := w.openChain(t, jobs)
	cleaner := store.NewCleaner(w.store(), job, chain)
	w.putFiles(t, file(1, 1), file(1, 2), file(1, 3), meta(1))
	var fails atomic.Bool
	fails.Store(true)
	w.fault = func(op faulty.Op, name string) error {
		if op == faulty.Delete && fails.Load() && name == job.String()+"/"+file(1, 2) {
			return io.ErrClosedPipe
		}
		return nil
	}
	wantIs(t, "Discard", cleaner.Discard(t.Context(), 1), io.ErrClosedPipe)
	w.wantFiles(t, file(1, 2), meta(1))
	fails.Store(false)
	if err := cleaner.Discard(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.wantFiles(t)
}

func TestWholeJobIsDiscarded(t *testing.T) {
	w := newWorld()
	jobs, _ := w.lead(t)
	chain := w.openChain(t, jobs)
	w.complete(t, chain, 1, file(1, 1), "shared/table")
	storetest.Put(t, w.blobs, "other/chk-1/_metadata", nil)
	if err := store.NewCleaner(w.store(), job, chain).DiscardJob(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if got := storetest.Names(t, w.blobs, ""); !slices.Equal(got, []string{"other/chk-1/_metadata"}) {
		t.Errorf("left %v", got)
	}
}

// A file of in-flight data that several subtasks name is deleted once, and not at all
// while a link names it.
func TestCleanerKnowsSharedChannelFiles(t *testing.T) {
	w := newWorld()
	jobs, _ := w.lead(t)
	chain := w.openChain(t, jobs)
	channel := func(id weir.CheckpointID, producer int32) weir.TaskStateSnapshot {
		return weir.TaskStateSnapshot{Channels: []weir.ChannelStateHandle{{
			Edge: weir.EdgeID{From: "count", To: "count"}, Producer: producer,
			Handle: weir.StateHandle{File: snapshotmeta.Dir(id) + "/channels", Length: 5},
		}}}
	}
	w.putFiles(t, "chk-1/channels", "chk-2/channels", file(2, 1))
	s := snapshot(1)
	for i := range int32(2) {
		if err := s.AddTask(weir.SubtaskID{Subtask: i}, channel(1, i)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := store.NewMetadataStore(w.store()).Write(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Add(t.Context(), store.Completed{Checkpoint: 1, Metadata: m.Name}); err != nil {
		t.Fatal(err)
	}
	deleted := map[string]int{}
	w.fault = func(op faulty.Op, name string) error {
		if op == faulty.Delete {
			deleted[name]++
		}
		return nil
	}
	cleaner := store.NewCleaner(w.store(), job, chain)
	if err := cleaner.DiscardHandles(t.Context(), "", channel(1, 0), channel(2, 0), channel(2, 1), taskState(file(2, 1))); err != nil {
		t.Fatal(err)
	}
	w.wantFiles(t, meta(1), "chk-1/channels")
	if name := job.String() + "/chk-2/channels"; deleted[name] != 1 || len(deleted) != 2 {
		t.Errorf("deletions %v", deleted)
	}
	w.complete(t, chain, 3, file(3, 1))
	if err := chain.Remove(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := cleaner.Discard(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w.wantFiles(t, meta(3), file(3, 1))
	if name := job.String() + "/chk-1/channels"; deleted[name] != 1 {
		t.Errorf("deletions %v", deleted)
	}
}
