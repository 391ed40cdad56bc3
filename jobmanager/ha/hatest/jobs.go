package hatest

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
)

func record(n byte, name, request string) ha.JobRecord {
	return ha.JobRecord{
		Job: weir.JobID{n}, Name: name, RequestID: request, EntryPoint: "wordcount", CodeID: "code",
		GraphHash: "abcd", Body: "jobs/body", Submitted: time.UnixMilli(1_700_000_000_000 + int64(n)).UTC(),
	}
}

func mustSubmit(t *testing.T, js *ha.JobStore, rec ha.JobRecord) ha.Job {
	t.Helper()
	job, created, err := js.Submit(ctxOf(t), rec, ha.JobStatus{State: "created"})
	if err != nil || !created {
		t.Fatalf("submit %q: created %v, %v", rec.Name, created, err)
	}
	return job
}

func mustStatus(t *testing.T, js *ha.JobStore, id weir.JobID, st ha.JobStatus) {
	t.Helper()
	if err := js.SetStatus(ctxOf(t), id, st); err != nil {
		t.Fatalf("set %s %s: %v", id, st.State, err)
	}
}

func submit(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	// Names of users may hold anything.
	first := mustSubmit(t, js, record(2, "my job/%41 ü", "r/1"))
	if want := (ha.Job{Record: record(2, "my job/%41 ü", "r/1"), Status: ha.JobStatus{State: "created", Epoch: l.Epoch()}}); !reflect.DeepEqual(first, want) {
		t.Fatalf("submitted %+v, want %+v", first, want)
	}
	again, created, err := js.Submit(ctxOf(t), record(3, "my job/%41 ü", "r/1"), ha.JobStatus{State: "created"})
	if err != nil || created || !reflect.DeepEqual(again, first) {
		t.Errorf("same request: %+v, created %v, %v", again, created, err)
	}
	_, _, err = js.Submit(ctxOf(t), record(3, "my job/%41 ü", "r/2"), ha.JobStatus{State: "created"})
	var taken *ha.NameTakenError
	if !errors.Is(err, ha.ErrNameTaken) || !errors.As(err, &taken) || taken.Holder.Job != first.Record.Job {
		t.Errorf("another request: %v", err)
	}
	_, _, err = js.Submit(ctxOf(t), record(3, "another name", "r/1"), ha.JobStatus{State: "created"})
	wantIs(t, "request id of another name", err, ha.ErrRequestReused)
	_, _, err = js.Submit(ctxOf(t), record(3, strings.Repeat("n", ha.MaxNameLength+1), "r/3"), ha.JobStatus{State: "created"})
	wantIs(t, "long name", err, ha.ErrTooLarge)
	_, _, err = js.Submit(ctxOf(t), record(3, "", "r/3"), ha.JobStatus{State: "created"})
	if err == nil {
		t.Error("no name: want an error")
	}

	s.LoseNext(c)
	second := mustSubmit(t, js, record(1, "second", "r/4"))
	jobs, err := js.Jobs(ctxOf(t))
	if err != nil || !reflect.DeepEqual(jobs, []ha.Job{second, first}) {
		t.Errorf("Jobs: %+v, %v", jobs, err)
	}
	one, err := js.Job(ctxOf(t), second.Record.Job)
	if err != nil || !reflect.DeepEqual(one, second) {
		t.Errorf("Job: %+v, %v", one, err)
	}
	_, err = js.Job(ctxOf(t), weir.JobID{99})
	wantIs(t, "Job", err, ha.ErrNoJob)
}

func status(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	id := mustSubmit(t, js, record(1, "job", "r1")).Record.Job
	mustStatus(t, js, id, ha.JobStatus{State: "running", Restarts: 2})
	s.LoseNext(c)
	failure := &weir.Failure{Message: strings.Repeat("m", 100_000), Stack: strings.Repeat("s", 1<<20), Operator: "op", Fault: weir.FaultUser}
	end := ha.JobStatus{State: "failed", Terminal: true, Since: time.UnixMilli(5).UTC(), Restarts: 3, Failure: failure}
	mustStatus(t, js, id, end)
	job, err := js.Job(ctxOf(t), id)
	if err != nil || job.Status.State != "failed" || !job.Status.Terminal || job.Status.Epoch != l.Epoch() || job.Status.Restarts != 3 ||
		job.Status.Failure.Operator != "op" || len(job.Status.Failure.Stack) > 20_000 || len(job.Status.Failure.Message) < 10_000 {
		t.Fatalf("Job: %+v, %v", job.Status, err)
	}
	wantIs(t, "status after the end", js.SetStatus(ctxOf(t), id, ha.JobStatus{State: "running"}), ha.ErrTerminal)
	wantIs(t, "status of nothing", js.SetStatus(ctxOf(t), weir.JobID{99}, ha.JobStatus{State: "running"}), ha.ErrNoJob)

	// The name is free; the request still means the job that ended.
	again, created, err := js.Submit(ctxOf(t), record(2, "job", "r1"), ha.JobStatus{State: "created"})
	if err != nil || created || again.Record.Job != id || !again.Status.Terminal {
		t.Errorf("same request: %+v, created %v, %v", again, created, err)
	}
	mustSubmit(t, js, record(2, "job", "r2"))

	s.Overtake(t)
	wantIs(t, "status by the overtaken", js.SetStatus(ctxOf(t), weir.JobID{2}, ha.JobStatus{State: "running"}), ha.ErrNotLeader)
}

func checkpointInterval(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	id := mustSubmit(t, js, record(1, "job", "r1")).Record.Job
	want := func(every time.Duration, set bool) {
		t.Helper()
		if got, ok, err := js.CheckpointInterval(ctxOf(t), id); got != every || ok != set || err != nil {
			t.Errorf("%s, set %v, %v; want %s, set %v", got, ok, err, every, set)
		}
	}
	want(0, false)
	for _, every := range []time.Duration{time.Minute, time.Second, 0} {
		s.LoseNext(c)
		if err := js.SetCheckpointInterval(ctxOf(t), id, every); err != nil {
			t.Fatal(err)
		}
		want(every, true)
	}
	if jobs, err := js.Jobs(ctxOf(t)); err != nil || len(jobs) != 1 {
		t.Errorf("Jobs: %+v, %v", jobs, err)
	}
	wantIs(t, "interval of nothing", js.SetCheckpointInterval(ctxOf(t), weir.JobID{99}, time.Second), ha.ErrNoJob)
	kv := mustGet(t, c, "jobs/"+id.String()+"/interval")
	mustTxn(t, c, l.Epoch(), ha.Update(kv, []byte(`{"nanoseconds": -1}`)))
	_, _, err := js.CheckpointInterval(ctxOf(t), id)
	wantIs(t, "negative interval", err, ha.ErrCorrupt)
	mustStatus(t, js, id, ha.JobStatus{State: "finished", Terminal: true})
	wantIs(t, "interval after the end", js.SetCheckpointInterval(ctxOf(t), id, time.Second), ha.ErrTerminal)
	s.Overtake(t)
	wantIs(t, "interval by the overtaken", js.SetCheckpointInterval(ctxOf(t), id, time.Second), ha.ErrTerminal)
}

func removeJob(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	id := mustSubmit(t, js, record(1, "job", "r1")).Record.Job
	other := mustSubmit(t, js, record(2, "other", "r2"))
	var newest ha.Link
	for n := range 3 {
		newest = mustLink(t, js, id, newest, weir.CheckpointID(n+1))
	}
	wantIs(t, "remove a live job", js.Remove(ctxOf(t), id), ha.ErrLive)
	mustStatus(t, js, id, ha.JobStatus{State: "finished", Terminal: true})
	s.LoseNext(c)
	for range 2 {
		if err := js.Remove(ctxOf(t), id); err != nil {
			t.Fatal(err)
		}
	}
	jobs, err := js.Jobs(ctxOf(t))
	if err != nil || !reflect.DeepEqual(jobs, []ha.Job{other}) {
		t.Errorf("Jobs: %+v, %v", jobs, err)
	}
	if kvs, _, err := c.List(ctxOf(t), "jobs/"+id.String()); err != nil || len(kvs) != 0 {
		t.Errorf("left: %+v, %v", kvs, err)
	}
	mustSubmit(t, js, record(3, "job", "r1"))
}

func corruptJob(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	good := mustSubmit(t, js, record(1, "good", "r1"))
	bad := mustSubmit(t, js, record(2, "bad", "r2")).Record.Job
	last := mustSubmit(t, js, record(3, "last", "r3"))
	kv := mustGet(t, c, "jobs/"+bad.String()+"/record")
	for _, value := range []string{`{"name": 7}`, `{"unknown": true}`, `{} trailing`, ``} {
		mustTxn(t, c, l.Epoch(), ha.Update(kv, []byte(value)))
		kv = mustGet(t, c, kv.Key)
		jobs, err := js.Jobs(ctxOf(t))
		if !reflect.DeepEqual(jobs, []ha.Job{good, last}) || !errors.Is(err, ha.ErrCorrupt) || !strings.Contains(err.Error(), bad.String()) {
			t.Errorf("%q: %+v, %v", value, jobs, err)
		}
		_, err = js.Job(ctxOf(t), bad)
		wantIs(t, value, err, ha.ErrCorrupt)
	}
}
