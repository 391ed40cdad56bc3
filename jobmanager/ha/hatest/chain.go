package hatest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
)

func link(id weir.CheckpointID) ha.Link {
	return ha.Link{Checkpoint: id, Kind: weir.Checkpoint, Metadata: fmt.Sprintf("job/chk-%d/_metadata", id), Bytes: 10, At: time.UnixMilli(int64(id)).UTC()}
}

func mustLink(t *testing.T, js *ha.JobStore, job weir.JobID, newest ha.Link, id weir.CheckpointID) ha.Link {
	t.Helper()
	l, err := js.AddLink(ctxOf(t), job, newest, link(id))
	if err != nil {
		t.Fatalf("add checkpoint %d: %v", id, err)
	}
	return l
}

func wantLinks(t *testing.T, js *ha.JobStore, job weir.JobID, want ...ha.Link) {
	t.Helper()
	got, err := js.Links(ctxOf(t), job)
	if err != nil || len(got) != len(want) {
		t.Fatalf("Links: %+v, %v; want %d", got, err, len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("link %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func chain(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	job := mustSubmit(t, js, record(1, "job", "r")).Record.Job
	wantLinks(t, js, job)
	l1 := mustLink(t, js, job, ha.Link{}, 3)
	want := link(3)
	want.Number, want.Epoch = 1, l.Epoch()
	if !reflect.DeepEqual(l1, want) {
		t.Errorf("first link %+v, want %+v", l1, want)
	}
	l2 := mustLink(t, js, job, l1, 4)
	l3 := mustLink(t, js, job, l2, 20)
	if l3.Number != 3 || l3.Parent != 2 {
		t.Errorf("third link %+v", l3)
	}
	wantLinks(t, js, job, l1, l2, l3)
	if _, err := js.AddLink(ctxOf(t), job, l3, link(20)); err == nil {
		t.Error("a checkpoint that is not newer: want an error")
	}
	_, err := js.AddLink(ctxOf(t), job, l2, link(21))
	wantIs(t, "after a link that is not the newest", err, ha.ErrOvertaken)
	_, err = js.AddLink(ctxOf(t), job, ha.Link{Number: 7, Checkpoint: 20}, link(21))
	wantIs(t, "after a link that is not there", err, ha.ErrOvertaken)
	wantLinks(t, js, job, l1, l2, l3)
}

func chainLost(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	job := mustSubmit(t, js, record(1, "job", "r")).Record.Job
	s.LoseNext(c)
	l1 := mustLink(t, js, job, ha.Link{}, 1)
	s.DropNext(c)
	l2 := mustLink(t, js, job, l1, 2)
	// A call that was given up while in doubt is repeated.
	if again := mustLink(t, js, job, l1, 2); !reflect.DeepEqual(again, l2) {
		t.Errorf("repeated: %+v, want %+v", again, l2)
	}
	wantLinks(t, js, job, l1, l2)
}

func chainOvertaken(t *testing.T, s System) {
	c1, lead1 := lead(t, s, "first")
	old := ha.NewJobStore(c1, lead1.Epoch())
	job := mustSubmit(t, old, record(1, "job", "r")).Record.Job
	l1 := mustLink(t, old, job, ha.Link{}, 1)
	s.Overtake(t)
	// A call that was given up while in doubt, and had added its link.
	if again := mustLink(t, old, job, ha.Link{}, 1); !reflect.DeepEqual(again, l1) {
		t.Errorf("repeated: %+v, want %+v", again, l1)
	}
	c2, lead2 := lead(t, s, "second")
	js := ha.NewJobStore(c2, lead2.Epoch())
	wantLinks(t, js, job, l1)
	l2 := mustLink(t, js, job, l1, 3)
	_, err := old.AddLink(ctxOf(t), job, l1, link(2))
	wantIs(t, "link of the overtaken", err, ha.ErrNotLeader)
	wantIs(t, "removal by the overtaken", old.RemoveLink(ctxOf(t), job, 1), ha.ErrNotLeader)
	wantLinks(t, js, job, l1, l2)

	// A leader that missed a link, for it read the chain too early, is told.
	_, err = js.AddLink(ctxOf(t), job, l1, link(4))
	wantIs(t, "link after a stale one", err, ha.ErrOvertaken)
}

func chainRemove(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	js := ha.NewJobStore(c, l.Epoch())
	job := mustSubmit(t, js, record(1, "job", "r")).Record.Job
	l1 := mustLink(t, js, job, ha.Link{}, 1)
	wantIs(t, "remove the only link", js.RemoveLink(ctxOf(t), job, 1), ha.ErrNewestLink)
	l2 := mustLink(t, js, job, l1, 2)
	l3 := mustLink(t, js, job, l2, 3)
	s.LoseNext(c)
	for range 2 {
		if err := js.RemoveLink(ctxOf(t), job, 2); err != nil {
			t.Fatal(err)
		}
	}
	wantLinks(t, js, job, l1, l3)
	wantIs(t, "remove the newest link", js.RemoveLink(ctxOf(t), job, 3), ha.ErrNewestLink)
	if err := js.RemoveLink(ctxOf(t), job, 1); err != nil {
		t.Fatal(err)
	}
	l4 := mustLink(t, js, job, l3, 4)
	wantLinks(t, js, job, l3, l4)
}

func checkpointIDs(t *testing.T, s System) {
	c1, lead1 := lead(t, s, "first")
	old := ha.NewJobStore(c1, lead1.Epoch())
	job := mustSubmit(t, old, record(1, "job", "r")).Record.Job
	last := weir.NoCheckpoint
	next := func(js *ha.JobStore) weir.CheckpointID {
		t.Helper()
		id, err := js.NextCheckpointID(ctxOf(t), job)
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("id %d after %d", id, last)
		}
		last = id
		return id
	}
	if id := next(old); id != 1 {
		t.Errorf("first id %d", id)
	}
	if id := next(old); id != 2 {
		t.Errorf("second id %d", id)
	}
	s.LoseNext(c1)
	next(old)
	s.DropNext(c1)
	next(old)
	if err := old.SkipCheckpointIDs(ctxOf(t), job, 40); err != nil {
		t.Fatal(err)
	}
	if id := next(old); id != 41 {
		t.Errorf("id %d, want 41", id)
	}
	if err := old.SkipCheckpointIDs(ctxOf(t), job, 10); err != nil {
		t.Fatal(err)
	}
	next(old)
	s.Overtake(t)
	c2, lead2 := lead(t, s, "second")
	next(ha.NewJobStore(c2, lead2.Epoch()))
	_, err := old.NextCheckpointID(ctxOf(t), job)
	wantIs(t, "id by the overtaken", err, ha.ErrNotLeader)
	_, err = ha.NewJobStore(c2, lead2.Epoch()).NextCheckpointID(ctxOf(t), weir.JobID{99})
	wantIs(t, "id of no job", err, ha.ErrNoJob)
}
