package daemon

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/weirflow/weir/blobstore"
)

// sharedStore is the checkpoint store of a TaskManager that was not told where it
// is: it asks the JobManager when it is first needed.
type sharedStore struct {
	// where returns the directory, from the JobManager.
	where func(ctx context.Context) (string, error)
	open  func(dir string) (blobstore.Store, error)

	mu struct {
		sync.Mutex
		store blobstore.Store
	}
}

var _ blobstore.Store = (*sharedStore)(nil)

// get returns the store, opening it if need be. The question is asked without the
// lock: two may ask at once, and one of the two stores is kept.
func (s *sharedStore) get(ctx context.Context) (blobstore.Store, error) {
	if st := s.opened(); st != nil {
		return st, nil
	}
	dir, err := s.where(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the JobManager where checkpoints are: %w", err)
	}
	st, err := s.open(dir)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.store == nil {
		s.mu.store = st
	}
	return s.mu.store, nil
}

func (s *sharedStore) opened() blobstore.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.store
}

func (s *sharedStore) Create(ctx context.Context, name string) (blobstore.Writer, error) {
	st, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return st.Create(ctx, name)
}

func (s *sharedStore) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	st, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return st.Open(ctx, name, offset, length)
}

func (s *sharedStore) Stat(ctx context.Context, name string) (blobstore.Info, error) {
	st, err := s.get(ctx)
	if err != nil {
		return blobstore.Info{}, err
	}
	return st.Stat(ctx, name)
}

func (s *sharedStore) List(ctx context.Context, prefix string, fn func(blobstore.Info) error) error {
	st, err := s.get(ctx)
	if err != nil {
		return err
	}
	return st.List(ctx, prefix, fn)
}

func (s *sharedStore) Delete(ctx context.Context, name string) error {
	st, err := s.get(ctx)
	if err != nil {
		return err
	}
	return st.Delete(ctx, name)
}

func (s *sharedStore) Location() string {
	if st := s.opened(); st != nil {
		return st.Location()
	}
	return "the JobManager's checkpoint directory"
}
