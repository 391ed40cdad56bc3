package mem_test

import (
	"errors"
	"io"
	"testing"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (store, other blobstore.Store) {
		s := mem.New()
		return s, s
	})
}

func TestFailedStoreAnswersNothingUntilHealed(t *testing.T) {
	s := mem.New()
	storetest.Put(t, s, "before", []byte("kept"))
	w, err := s.Create(t.Context(), "open")
	if err != nil {
		t.Fatal(err)
	}
	s.Fail(io.ErrClosedPipe)
	if err := w.Commit(t.Context()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Commit: %v", err)
	}
	if _, err := s.Open(t.Context(), "before", 0, -1); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Open: %v", err)
	}
	s.Fail(nil)
	if names := storetest.Names(t, s, ""); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}
