package jobmanager

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

func TestJobStartsFromAPathAndLeavesItAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		w.submit(jm, "first", checkpointed)
		w.await(jm, "first", rpc.JobRunning)
		w.awaitCheckpoint(jm, "first", 4)
		w.must(jm.Cancel(t.Context(), "first"))
		w.await(jm, "first", rpc.JobCanceled)
		c := w.awaitCheckpoint(jm, "first", 4)

		// From the path as it was printed, with another parallelism.
		r := request("second", checkpointed, "parallelism.default=2")
		r.From = c.Path
		_, err := jm.Submit(t.Context(), r)
		w.must(err)
		d := w.await(jm, "second", rpc.JobRunning)
		if !strings.Contains(d.RestoredFrom, "checkpoint") {
			t.Errorf("restored from %q", d.RestoredFrom)
		}
		owners, splits := 0, 0
		for _, dep := range f.deployments() {
			if dep.Attempt.Job != d.Job {
				continue
			}
			if dep.RestoredFrom != c.ID || dep.Splits != nil {
				t.Errorf("%s restores %d, splits %v", dep.Attempt, dep.RestoredFrom, dep.Splits)
			}
			for _, o := range dep.Restore {
				splits += len(o.Elements)
				for _, k := range o.Keyed {
					if k.Range != weir.KeyGroupRangeOf(128, 2, int(dep.Attempt.Subtask)) {
						t.Errorf("%s reads %s", dep.Attempt, k.Range)
					}
					owners++
				}
			}
		}
		if owners != 2 || splits != 1 {
			t.Errorf("%d subtasks got keyed state, %d splits were dealt; want 2 and 1", owners, splits)
		}
		// Ids continue above it, and what it came from stays when it is long subsumed.
		next := w.awaitCheckpoint(jm, "second", c.ID+1)
		w.awaitCheckpoint(jm, "second", next.ID+5)
		time.Sleep(time.Second)
		name := strings.TrimPrefix(c.Path, w.blobs.Location()+"/")
		if _, err := snapshotmeta.Open(t.Context(), w.blobs, path.Join(name, snapshotmeta.MetadataFile)); err != nil {
			t.Errorf("the snapshot it was started from: %v", err)
		}
		// A path relative to the checkpoint directory, and the file itself.
		r = request("third", checkpointed)
		r.From = name + "/_metadata"
		w.must(jm.Cancel(t.Context(), "second"))
		_, err = jm.Submit(t.Context(), r)
		w.must(err)
		w.await(jm, "third", rpc.JobRunning)
	})
}

func TestUnalignedCheckpointIsRestoredAtAnotherParallelism(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		hearts := w.hearts()
		f.join(jm, 1).live(hearts)
		f.join(jm, 2).live(hearts)
		w.submit(jm, "first", checkpointed, "execution.checkpointing.unaligned.enabled=true", "parallelism.default=2")
		c := w.awaitCheckpoint(jm, "first", 2)
		if c.Type() != "UNALIGNED_CHECKPOINT" || c.PersistedBytes != 4*3 {
			t.Errorf("%s with %d bytes in flight", c.Type(), c.PersistedBytes)
		}
		d, err := jm.Get(t.Context(), "first")
		w.must(err)
		for _, dep := range f.deployments() {
			o := dep.Options
			if !o.Unaligned || o.ChannelStateSubtasks != 5 || o.ChannelStateMemory != 64<<20 {
				t.Errorf("task options %+v", o)
			}
			for _, p := range dep.Outputs {
				if p.Aligns {
					t.Errorf("the edge by %s aligns", p.Partitioning)
				}
			}
		}
		w.must(jm.Cancel(t.Context(), "first"))
		w.await(jm, "first", rpc.JobCanceled)

		r := request("second", "parallelism.default=3")
		r.From = c.Path
		_, err = jm.Submit(t.Context(), r)
		w.must(err)
		second := w.await(jm, "second", rpc.JobRunning).Job
		var got []string
		deployed := f.deployments()
		slices.SortStableFunc(deployed, func(a, b rpc.TaskDeployment) int { return cmp.Compare(a.Attempt.Subtask, b.Attempt.Subtask) })
		for _, dep := range deployed {
			for _, rc := range dep.Recovered {
				if dep.Attempt.Job != second || rc.Channel != -1 || len(rc.Captured) != 1 {
					t.Errorf("%s of %s recovers %+v", dep.Attempt, d.Name, rc)
				}
				got = append(got, fmt.Sprintf("%d: %s %t", dep.Attempt.Subtask, rc.Captured[0].Inline, rc.Filter))
			}
		}
		// Of 128 key groups consumer 0 had the first 64; consumer 1 of 3 has 43 to 85.
		want := []string{
			"0: 0>0 true", "0: 1>0 true", "1: 0>0 true", "1: 1>0 true", "1: 0>1 true", "1: 1>1 true", "2: 0>1 true", "2: 1>1 true",
		}
		if !slices.Equal(got, want) {
			t.Errorf("recovered\n%q\nwant\n%q", got, want)
		}
	})
}

func TestFailoverBeforeTheFirstCheckpointStartsFromThePathAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1)
		w.submit(jm, "first", checkpointed)
		c := w.awaitCheckpoint(jm, "first", 2)
		w.must(jm.Cancel(t.Context(), "first"))
		w.await(jm, "first", rpc.JobCanceled)
		r := request("second", "execution.checkpointing.interval=1h")
		r.From = c.Path
		_, err := jm.Submit(t.Context(), r)
		w.must(err)
		w.await(jm, "second", rpc.JobRunning)
		w.must(jm.Stop(t.Context()))
		next := w.manager()
		f.join(next, 1, func(r *rpc.Register) { r.Incarnation = 2 })
		w.await(next, "second", rpc.JobRunning)
		deployed := f.deployments()
		if last := deployed[len(deployed)-1]; last.RestoredFrom != c.ID {
			t.Errorf("after the JobManager's restart it resumes from %d, want %d", last.RestoredFrom, c.ID)
		}
	})
}

func TestBadPathsToStartFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		w.submit(jm, "job", checkpointed)
		c := w.awaitCheckpoint(jm, "job", 2)
		name := strings.TrimPrefix(c.Path, w.blobs.Location()+"/")
		good := w.read(path.Join(name, snapshotmeta.MetadataFile))
		w.write("j/chk-1/_metadata", []byte("this is no snapshot, only some text"))
		w.write("j/chk-2/_metadata", good[:len(good)-5])
		damaged := append([]byte(nil), good...)
		damaged[len(damaged)/2] ^= 1
		w.write("j/chk-3/_metadata", damaged)

		cases := []struct {
			from string
			code rpc.Code
			say  string
		}{
			{"j/chk-9", rpc.CodeNotFound, "no snapshot"},
			{"j/chk-1", rpc.CodeInvalidArgument, "not a snapshot"},
			{"j/chk-2", rpc.CodeInvalidArgument, "damaged"},
			{"j/chk-3", rpc.CodeInvalidArgument, "damaged"},
			{"../../etc/passwd", rpc.CodeInvalidArgument, "goes up"},
			{w.blobs.Location() + "/j/../../x/chk-1", rpc.CodeInvalidArgument, "goes up"},
			{"/etc/passwd", rpc.CodeInvalidArgument, "not in the cluster's checkpoint directory"},
			{"j", rpc.CodeInvalidArgument, "does not look like"},
			{"a/b/c/chk-1", rpc.CodeInvalidArgument, "does not look like"},
			{"j/chk-1\x00", rpc.CodeInvalidArgument, ""},
		}
		for _, tc := range cases {
			r := request("other")
			r.From = tc.from
			_, err := jm.Submit(t.Context(), r)
			w.wantError(err, tc.code, tc.say)
		}
		// Another graph: the operator that has the state is gone.
		r := request("other")
		r.From, r.Params = c.Path, map[string]string{"count": "renamed"}
		_, err := jm.Submit(t.Context(), r)
		w.wantError(err, rpc.CodeInvalidArgument, `operator "count"`, "no operator of that name")
		// More subtasks than key groups.
		r = request("other", "parallelism.default=200", "pipeline.max-parallelism=256")
		r.From = c.Path
		_, err = jm.Submit(t.Context(), r)
		w.wantError(err, rpc.CodeInvalidArgument, "128 key groups")
	})
}

func TestBadSubmissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm := w.manager()
		submit := func(change func(r *rpc.SubmitRequest)) error {
			r := request("job")
			change(&r)
			_, err := jm.Submit(t.Context(), r)
			return err
		}
		w.wantError(submit(func(r *rpc.SubmitRequest) { r.Options["execution.checkpointing.intervall"] = "1s" }),
			rpc.CodeInvalidArgument, `"execution.checkpointing.intervall"`, `nearest is "execution.checkpointing.interval"`)
		w.wantError(submit(func(r *rpc.SubmitRequest) {
			r.Options["parallelism.default"] = "many"
			r.Options["slot.request.timeout"] = "-1s"
		}), rpc.CodeInvalidArgument, "parallelism.default", "slot.request.timeout")
		w.wantError(submit(func(r *rpc.SubmitRequest) { r.Options["execution.checkpointing.incremental"] = "true" }),
			rpc.CodeInvalidArgument, "not supported yet")
		w.wantError(submit(func(r *rpc.SubmitRequest) {
			r.Options["execution.checkpointing.unaligned.enabled"] = "true"
			r.Options["execution.checkpointing.mode"] = "AT_LEAST_ONCE"
		}), rpc.CodeInvalidArgument, "execution.checkpointing.unaligned.enabled", "execution.checkpointing.mode = AT_LEAST_ONCE")
		w.wantError(submit(func(r *rpc.SubmitRequest) { r.Entrypoint = "dmeo" }), rpc.CodeInvalidArgument, "known are: demo")
		w.wantError(submit(func(r *rpc.SubmitRequest) { r.Entrypoint = "" }), rpc.CodeInvalidArgument)
		w.wantError(submit(func(r *rpc.SubmitRequest) { r.Name = strings.Repeat("x", 300) }), rpc.CodeInvalidArgument)
		w.wantError(submit(func(r *rpc.SubmitRequest) { r.Name = "a\nb" }), rpc.CodeInvalidArgument)
		w.wantError(submit(func(r *rpc.SubmitRequest) { r.Parallelism = -1 }), rpc.CodeInvalidArgument)
		w.wantError(submit(func(r *rpc.SubmitRequest) { r.Parallelism = 200; r.Options["pipeline.max-parallelism"] = "100" }),
			rpc.CodeInvalidArgument, "maximum parallelism 100")

		set := func(change func()) {
			w.catalog.mu.Lock()
			defer w.catalog.mu.Unlock()
			change()
		}
		set(func() { w.catalog.mu.random = true })
		w.wantError(submit(func(*rpc.SubmitRequest) {}), rpc.CodeInvalidArgument, "not deterministic", "count-")
		set(func() { w.catalog.mu.random, w.catalog.mu.panics = false, true })
		w.wantError(submit(func(*rpc.SubmitRequest) {}), rpc.CodeInvalidArgument, "the builder is broken")
		set(func() { w.catalog.mu.panics, w.catalog.mu.block = false, make(chan struct{}) })
		w.wantError(submit(func(*rpc.SubmitRequest) {}), rpc.CodeDeadlineExceeded, "not done within 20s")
		set(func() { w.catalog.mu.block = nil })

		jobs, err := jm.List(t.Context())
		w.must(err)
		if len(jobs) != 0 {
			t.Errorf("bad submissions made jobs: %+v", jobs)
		}
		// Nothing is left behind by those that were refused.
		err = w.blobs.List(t.Context(), "", func(i blobstore.Info) error { t.Errorf("left behind: %s", i.Name); return nil })
		w.must(err)
	})
}

func TestPlanStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm := w.manager()
		p, err := jm.Plan(t.Context(), request("job", "parallelism.default=100"))
		w.must(err)
		if p.Slots != 100 || len(p.Graph.Vertices) != 2 || !strings.Contains(p.Text, "src") {
			t.Errorf("plan: %d slots, %d vertices", p.Slots, len(p.Graph.Vertices))
		}
		if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "256 key groups over 100 subtasks") {
			t.Errorf("warnings %q", p.Warnings)
		}
		jobs, err := jm.List(t.Context())
		w.must(err)
		if len(jobs) != 0 {
			t.Errorf("the plan made jobs: %+v", jobs)
		}
	})
}

func TestClientThatGoesAwayLeavesItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm := w.manager()
		w.catalog.mu.block = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := jm.Submit(ctx, request("job")); err == nil {
			t.Fatal("submit returned before the build")
		}
		close(w.catalog.mu.block)
		synctest.Wait()
		reply, err := jm.Submit(t.Context(), request("job"))
		w.must(err)
		if !reply.Existed {
			t.Error("the request id made a second job")
		}
	})
}

func TestOldestEndedJobsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm := w.manager(func(c *Config) { c.RetainedJobs = 2 })
		for _, name := range []string{"a", "b", "c", "d"} {
			w.submit(jm, name)
			w.must(jm.Cancel(t.Context(), name))
			w.await(jm, name, rpc.JobCanceled)
			time.Sleep(time.Second)
		}
		jobs, err := jm.List(t.Context())
		w.must(err)
		if len(jobs) != 2 || jobs[0].Name != "d" || jobs[1].Name != "c" {
			t.Errorf("list: %+v", jobs)
		}
		bodies := 0
		w.must(w.blobs.List(t.Context(), "", func(blobstore.Info) error { bodies++; return nil }))
		if bodies != 2 {
			t.Errorf("%d bodies are kept", bodies)
		}
	})
}

func FuzzBody(f *testing.F) {
	f.Add([]byte("weir-job 1 00000000\n{}"))
	good, err := jobmaster.EncodeSubmission(&jobmaster.Submission{Name: "x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := jobmaster.DecodeSubmission(body)
		if err == nil && (s.Graph == nil || len(s.Graph.Vertices) == 0) {
			t.Error("a body without a graph was read")
		}
	})
}

func (w *world) read(name string) []byte {
	w.t.Helper()
	r, err := w.blobs.Open(w.t.Context(), name, 0, -1)
	w.must(err)
	b, err := io.ReadAll(r)
	w.must(err)
	w.must(r.Close())
	return b
}

func (w *world) write(name string, content []byte) {
	w.t.Helper()
	b, err := w.blobs.Create(w.t.Context(), name)
	w.must(err)
	_, err = b.Write(content)
	w.must(err)
	w.must(b.Commit(w.t.Context()))
}
