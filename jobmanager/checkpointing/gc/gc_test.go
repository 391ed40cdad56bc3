package gc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/jobmanager/checkpointing/gc"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

var a, b, stranger = weir.JobID{1}, weir.JobID{2}, weir.JobID{3}

// directory is a checkpoint directory in the making.
type directory struct {
	t *testing.T
	*mem.Store
}

func newDirectory(t *testing.T) directory { return directory{t, mem.New()} }

func (d directory) files(job weir.JobID, names ...string) {
	for _, n := range names {
		storetest.Put(d.t, d.Store, job.String()+"/"+n, []byte("content"))
	}
}

// snapshot writes _metadata that names files of the job's directory.
func (d directory) snapshot(job weir.JobID, id weir.CheckpointID, files ...string) {
	d.t.Helper()
	op := weir.OperatorIDOf("count")
	s := snapshotmeta.New(snapshotmeta.Header{Job: job, Checkpoint: id, Vertices: []snapshotmeta.Vertex{
		{Name: "count", Parallelism: 1, MaxParallelism: 128, Operators: []snapshotmeta.OperatorRef{{ID: op, Name: "count"}}},
	}})
	state := weir.OperatorSubtaskState{Operator: op}
	for _, f := range files {
		state.Elements = append(state.Elements, weir.StateHandle{File: f, Length: 7})
	}
	if err := s.AddTask(weir.SubtaskID{}, weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{state}}); err != nil {
		d.t.Fatal(err)
	}
	var content bytes.Buffer
	if err := snapshotmeta.Write(&content, s); err != nil {
		d.t.Fatal(err)
	}
	storetest.Put(d.t, d.Store, snapshotmeta.MetadataName(job, id), content.Bytes())
}

func (d directory) sort(use rpc.InUse, o gc.Options) *gc.Report {
	d.t.Helper()
	found, err := gc.List(d.t.Context(), d.Store)
	if err != nil {
		d.t.Fatal(err)
	}
	r, err := gc.Sort(d.t.Context(), d.Store, found, use, o)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// inUse is a job that needs these checkpoints of its own.
func inUse(job weir.JobID, status rpc.JobStatus, ids ...weir.CheckpointID) rpc.JobInUse {
	j := rpc.JobInUse{Job: job, Status: status}
	for _, id := range ids {
		j.Metadata = append(j.Metadata, snapshotmeta.MetadataName(job, id))
	}
	return j
}

func cluster(jobs ...rpc.JobInUse) rpc.InUse { return rpc.InUse{ClusterID: "c", Jobs: jobs} }

// wantOrphans compares the orphans' files, without the job's id.
func wantOrphans(t *testing.T, r *gc.Report, want ...string) {
	t.Helper()
	var got []string
	for _, o := range r.Orphans {
		for _, f := range o.Files {
			_, rest, _ := strings.Cut(f.Name, "/")
			got = append(got, rest)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("orphans %q, want %q", got, want)
	}
}

func wantReason(t *testing.T, list []gc.Kept, dir, why string) {
	t.Helper()
	for _, k := range list {
		if strings.HasSuffix(k.Dir, dir) && strings.Contains(k.Why, why) {
			return
		}
	}
	t.Errorf("no %s because %q in %+v", dir, why, list)
}

func TestWhatNoLinkNamesIsAnOrphan(t *testing.T) {
	d := newDirectory(t)
	d.files(a, "job.json", "chk-1/x", "chk-3/x", "chk-3/late", "chk-4/x", "chk-5/x", "shared/used", "shared/unused")
	d.snapshot(a, 1, "chk-1/x") // killed between unlink and removal
	d.snapshot(a, 3, "chk-3/x", "shared/used")
	d.snapshot(a, 5, "chk-5/x") // killed between _metadata and link: O-STO-06
	r := d.sort(cluster(inUse(a, rpc.JobFailed, 3)), gc.Options{})
	wantOrphans(t, r, "chk-1/x", "chk-1/_metadata", "chk-3/late", "chk-4/x", "chk-5/x", "chk-5/_metadata", "shared/unused")
	if r.InUse != 1 || len(r.Trouble)+len(r.Unknown)+len(r.Kept) != 0 {
		t.Errorf("%+v", r)
	}
	done, err := r.Delete(t.Context(), d.Store)
	if err != nil || done.Files != 7 {
		t.Errorf("deleted %+v, %v", done, err)
	}
	want := []string{"chk-3/_metadata", "chk-3/x", "job.json", "shared/used"}
	for i := range want {
		want[i] = a.String() + "/" + want[i]
	}
	if got := storetest.Names(t, d.Store, ""); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	wantOrphans(t, d.sort(cluster(inUse(a, rpc.JobFailed, 3)), gc.Options{}))
}

func TestWhatIsUnderWayIsLeft(t *testing.T) {
	d := newDirectory(t)
	d.files(a, "chk-3/x", "chk-4/x", "chk-5/x", "shared/new", "notes/x")
	d.snapshot(a, 3, "chk-3/x")
	j := inUse(a, rpc.JobRunning, 3)
	j.Pending = []weir.CheckpointID{5}
	r := d.sort(cluster(j), gc.Options{})
	wantOrphans(t, r, "chk-4/x")
	wantReason(t, r.Kept, "chk-5", "under way")
	wantReason(t, r.Kept, "shared", "the job lives")
	wantReason(t, r.Kept, "notes", "no directory of ours")
}

// TestCleanupBeforeRecordsAreKnown: field report B14.
func TestCleanupBeforeRecordsAreKnown(t *testing.T) {
	d := newDirectory(t)
	d.files(stranger, "job.json", "chk-1/x")
	d.snapshot(stranger, 1, "chk-1/x")
	d.files(b, "chk-2/x")
	r := d.sort(cluster(rpc.JobInUse{Job: b, Status: rpc.JobRunning, Unknown: "its chain cannot be read"}), gc.Options{})
	wantOrphans(t, r)
	wantReason(t, r.Unknown, stranger.String(), "no record")
	wantReason(t, r.Trouble, b.String(), "chain cannot be read")
}

func TestNothingOfAJobGoesIfWhatItNeedsCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		make func(d directory)
		why  string
	}{
		"damaged": {func(d directory) {
			storetest.Put(t, d.Store, snapshotmeta.MetadataName(a, 3), []byte("WEIRMETA...."))
		}, "snapshot"},
		"absent": {func(directory) {}, "is this the cluster's checkpoint directory?"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory(t)
			d.files(a, "chk-1/x")
			d.files(b, "chk-1/x")
			c.make(d)
			r := d.sort(cluster(inUse(a, rpc.JobRunning, 3), inUse(b, rpc.JobCanceled)), gc.Options{})
			wantOrphans(t, r, "chk-1/x") // of b
			if len(r.Orphans) == 1 && r.Orphans[0].Job != b {
				t.Errorf("an orphan of %s", r.Orphans[0].Job)
			}
			wantReason(t, r.Trouble, a.String(), c.why)
		})
	}
}

func TestSnapshotThatAnotherJobStartsFromIsLeft(t *testing.T) {
	for name, at := range map[string]string{"here": "", "under another path": "/mnt/same//"} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory(t)
			d.files(a, "chk-1/x", "chk-2/x")
			d.snapshot(a, 1, "chk-1/x")
			d.snapshot(a, 2, "chk-2/x")
			other := rpc.JobInUse{Job: b, Status: rpc.JobRunning, Metadata: []string{at + snapshotmeta.MetadataName(a, 1)}}
			r := d.sort(cluster(inUse(a, rpc.JobCanceled), other), gc.Options{})
			wantOrphans(t, r, "chk-2/x", "chk-2/_metadata")
			// A job is started from the other one between the question and the deletion.
			later := other
			later.Metadata = append(later.Metadata, at+snapshotmeta.MetadataName(a, 2))
			r.Spare(cluster(later))
			wantOrphans(t, r)
			wantReason(t, r.Kept, "chk-2", "uses it since")
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		d := newDirectory(t)
		other := rpc.JobInUse{Job: b, Status: rpc.JobRunning, Metadata: []string{"/other//" + snapshotmeta.MetadataName(a, 1)}}
		d.files(b, "chk-9/x")
		wantOrphans(t, d.sort(cluster(other), gc.Options{}), "chk-9/x")
	})
}

func TestClaimedSnapshotIsLeft(t *testing.T) {
	d := newDirectory(t)
	d.files(a, "chk-1/x")
	d.snapshot(a, 1, "chk-1/x")
	claim := store.Claim{Cluster: "other", Job: stranger.String()}
	if err := store.TakeClaim(t.Context(), d.Store, a.String()+"/chk-1", claim, nil); err != nil {
		t.Fatal(err)
	}
	r := d.sort(cluster(inUse(a, rpc.JobCanceled)), gc.Options{})
	wantOrphans(t, r)
	wantReason(t, r.Kept, "chk-1", `cluster "other"`)
}

func TestYoungFilesAreLeft(t *testing.T) {
	now := time.Now()
	ages := map[string]time.Duration{"chk-1/old": time.Hour, "chk-2/old": time.Hour, "chk-2/young": time.Minute, "chk-4/ageless": 0}
	d := newDirectory(t)
	for name := range ages {
		d.files(a, name)
	}
	blobs := aged{d.Store, func(name string) time.Time {
		if age := ages[strings.TrimPrefix(name, a.String()+"/")]; age > 0 {
			return now.Add(-age)
		}
		return time.Time{}
	}}
	found, err := gc.List(t.Context(), blobs)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gc.Sort(t.Context(), blobs, found, cluster(inUse(a, rpc.JobCanceled)), gc.Options{Now: now, MinAge: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	wantOrphans(t, r, "chk-1/old")
	wantReason(t, r.Kept, "chk-2", "younger than 10m")
	wantReason(t, r.Kept, "chk-4", "younger than 10m")
	if r.Young != 3 {
		t.Errorf("%d young files", r.Young)
	}
}

// aged is a store that knows how old its blobs are.
type aged struct {
	*mem.Store
	at func(name string) time.Time
}

func (s aged) List(ctx context.Context, prefix string, fn func(blobstore.Info) error) error {
	return s.Store.List(ctx, prefix, func(i blobstore.Info) error {
		i.Modified = s.at(i.Name)
		return fn(i)
	})
}

func TestSavepointsAreOrphansOnlyIfTheyWereNeverComplete(t *testing.T) {
	d := newDirectory(t)
	storetest.Put(t, d.Store, "savepoints/sp-1/_metadata", []byte("whole"))
	storetest.Put(t, d.Store, "savepoints/sp-1/x", []byte("x"))
	storetest.Put(t, d.Store, "savepoints/deep/sp-2/x", []byte("x"))
	storetest.Put(t, d.Store, "README", []byte("x"))
	idle := inUse(a, rpc.JobRunning)
	wantOrphans(t, d.sort(cluster(idle), gc.Options{}), "deep/sp-2/x")
	idle.Saving = true
	r := d.sort(cluster(idle), gc.Options{})
	wantOrphans(t, r)
	wantReason(t, r.Kept, "sp-2", "under way")
}

func TestMetadataIsDeletedLastAndOnlyIfTheRestIs(t *testing.T) {
	d := newDirectory(t)
	d.files(a, "chk-1/a", "chk-1/z")
	d.snapshot(a, 1, "chk-1/a", "chk-1/z")
	var order []string
	refuse := a.String() + "/chk-1/z"
	blobs := faulty.New(d.Store, faulty.Hook{Before: func(_ context.Context, op faulty.Op, name string) error {
		if op == faulty.Delete {
			order = append(order, name)
			if name == refuse {
				return errors.New("not allowed")
			}
		}
		return nil
	}})
	r := d.sort(cluster(inUse(a, rpc.JobCanceled)), gc.Options{})
	if _, err := r.Delete(t.Context(), blobs); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("Delete: %v", err)
	}
	refuse = ""
	r = d.sort(cluster(inUse(a, rpc.JobCanceled)), gc.Options{})
	if _, err := r.Delete(t.Context(), blobs); err != nil {
		t.Errorf("Delete again: %v", err)
	}
	dir := a.String() + "/chk-1/"
	if want := []string{dir + "a", dir + "z", dir + "z", dir + "_metadata"}; !slices.Equal(order, want) {
		t.Errorf("deleted in order %q, want %q", order, want)
	}
	if got := storetest.Names(t, d.Store, ""); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

func ExampleReport() {
	blobs := mem.New()
	found, _ := gc.List(context.Background(), blobs)
	report, _ := gc.Sort(context.Background(), blobs, found, rpc.InUse{}, gc.Options{})
	fmt.Println(len(report.Orphans), "orphans")
	// Output: 0 orphans
}
