package daemon

import (
	"context"
	"errors"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/snapshotmeta"
)

func TestStateIsWrittenWhereTheSubmissionIs(t *testing.T) {
	t.Parallel()
	home, away := weir.JobID{1}, weir.JobID{2}
	s := &homeStore{Store: mem.New()}
	put(t, s.Store, jobmaster.BodyName(home))
	put(t, s, snapshotmeta.JobDir(home)+"/chk-1/v0.state")
	if _, err := s.Create(t.Context(), snapshotmeta.JobDir(away)+"/chk-1/v0.state"); !errors.Is(err, errElsewhere) {
		t.Errorf("a job whose submission is elsewhere: %v", err)
	}
	put(t, s, snapshotmeta.JobDir(home)+"/chk-2/v0.state")
	put(t, s.Store, jobmaster.BodyName(away)) // the volume is there now
	put(t, s, snapshotmeta.JobDir(away)+"/chk-1/v0.state")
}

func TestStoreThatCannotBeAskedIsNotElsewhere(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	s := &homeStore{Store: silentStore{mem.New(), broken}}
	if _, err := s.Create(t.Context(), snapshotmeta.JobDir(weir.JobID{1})+"/chk-1/v0.state"); !errors.Is(err, broken) || errors.Is(err, errElsewhere) {
		t.Errorf("it is %v", err)
	}
}

// silentStore answers no question.
type silentStore struct {
	blobstore.Store
	err error
}

func (s silentStore) Stat(context.Context, string) (blobstore.Info, error) {
	return blobstore.Info{}, s.err
}

func put(t *testing.T, s blobstore.Store, name string) {
	t.Helper()
	w, err := s.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}
