package hatest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
)

// stops: the wish to stop a job is kept for the next leader, and what came of it for
// those who ask again.
func stops(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	job := mustSubmit(t, js, record(1, "job", "r")).Record.Job
	if _, asked, err := js.Stop(ctxOf(t), job); asked || err != nil {
		t.Fatalf("a stop that nobody asked for: %v, %v", asked, err)
	}
	set := func(stop ha.Stop) {
		t.Helper()
		if err := js.SetStop(ctxOf(t), job, stop); err != nil {
			t.Fatal(err)
		}
	}
	get := func() ha.Stop {
		t.Helper()
		stop, asked, err := js.Stop(ctxOf(t), job)
		if err != nil || !asked {
			t.Fatalf("no stop: %v", err)
		}
		return stop
	}
	wish := ha.Stop{RequestID: "r0", Kind: weir.SuspendSavepoint, Directory: "//savepoints"}
	s.LoseNext(c) // the answer; the write is settled
	set(wish)
	if got := get(); got.RequestID != "r0" || got.Failure != "" || got.Epoch != l.Epoch() {
		t.Errorf("recorded %+v", got)
	}
	failed := wish
	failed.Failure, failed.Checkpoint, failed.Metadata = strings.Repeat("x", 10_000), 7, "savepoints/s/_metadata"
	set(failed)
	if f, ok := func() (ha.FailedStop, bool) { st := get(); return st.Failed("r0") }(); !ok || f.Checkpoint != 7 || f.Metadata != failed.Metadata || len(f.Failure) > 4096 {
		t.Errorf("recorded failure %.40q of %d bytes, %+v", f.Failure, len(f.Failure), ok)
	}
	// Many follow; the latest ones are remembered.
	for i := 1; i <= 40; i++ {
		next := ha.Stop{RequestID: fmt.Sprint("r", i), Kind: weir.TerminateSavepoint, Directory: "//savepoints"}
		set(next)
		next.Failure = "no"
		set(next)
	}
	last := get()
	for i, want := range map[int]bool{40: true, 39: true, 30: true, 0: false} {
		if _, ok := last.Failed(fmt.Sprint("r", i)); ok != want {
			t.Errorf("r%d is remembered: %v, want %v", i, ok, want)
		}
	}
	mustStatus(t, js, job, ha.JobStatus{State: "finished", Terminal: true})
	wantIs(t, "stop of a job that has ended", js.SetStop(ctxOf(t), job, wish), ha.ErrTerminal)
	if get().RequestID != "r40" {
		t.Errorf("a stop was recorded of a job that has ended")
	}
	wantIs(t, "stop of no job", js.SetStop(ctxOf(t), weir.JobID{99}, wish), ha.ErrNoJob)
	if err := js.Remove(ctxOf(t), job); err != nil {
		t.Fatal(err)
	}
	if _, asked, err := js.Stop(ctxOf(t), job); asked || err != nil {
		t.Errorf("the stop of a job that was removed: %v, %v", asked, err)
	}
}
