package hatest

import (
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
)

func confirm(t *testing.T, s System) {
	c, l := lead(t, s, "first")
	js := ha.NewJobStore(c, l.Epoch())
	for _, trouble := range []func(ha.Registry){func(ha.Registry) {}, s.DropNext, s.LoseNext} {
		trouble(c)
		if err := js.Confirm(ctxOf(t)); err != nil {
			t.Errorf("while it leads: %v", err)
		}
	}
	s.Overtake(t)
	c2, l2 := lead(t, s, "second")
	for _, trouble := range []func(ha.Registry){func(ha.Registry) {}, s.DropNext, s.LoseNext} {
		trouble(c)
		wantIs(t, "once it is overtaken", js.Confirm(ctxOf(t)), ha.ErrNotLeader)
	}
	if err := ha.NewJobStore(c2, l2.Epoch()).Confirm(ctxOf(t)); err != nil {
		t.Errorf("its successor: %v", err)
	}
}

func chainDrop(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	job := mustSubmit(t, js, record(1, "job", "r")).Record.Job
	l1 := mustLink(t, js, job, ha.Link{}, 1)
	l2 := mustLink(t, js, job, l1, 2)
	l3 := mustLink(t, js, job, l2, 3)
	wantIs(t, "drop the chain of a job that lives", js.DropChain(ctxOf(t), job), ha.ErrNewestLink)
	if err := js.DropLink(ctxOf(t), job, l3.Metadata); err != nil {
		t.Error(err)
	}
	wantLinks(t, js, job, l1, l2, l3)
	if err := js.SetStatus(ctxOf(t), job, ha.JobStatus{State: "CANCELED", Terminal: true}); err != nil {
		t.Fatal(err)
	}
	s.LoseNext(c)
	for _, gone := range []string{l3.Metadata, l3.Metadata, "another/chk-1/_metadata"} {
		if err := js.DropLink(ctxOf(t), job, gone); err != nil {
			t.Error(err)
		}
	}
	wantLinks(t, js, job, l1, l2)
	for range 2 {
		if err := js.DropChain(ctxOf(t), job); err != nil {
			t.Error(err)
		}
	}
	wantLinks(t, js, job)
	if err := js.DropLink(ctxOf(t), weir.JobID{99}, l1.Metadata); err != nil {
		t.Errorf("a job that is not recorded: %v", err)
	}
}
