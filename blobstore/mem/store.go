package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/weirflow/weir/blobstore"
)

// Store is a [blobstore.Store] in memory.
type Store struct {
	mu struct {
		sync.Mutex
		blobs map[string][]byte // never changed once they are here
		fail  error             // what every call answers, if it is set
	}
}

var _ blobstore.Store = (*Store)(nil)

// errFinished is returned by calls on a writer after Commit or Abort.
var errFinished = errors.New("blob writer was committed or aborted before")

// New returns an empty store.
func New() *Store {
	s := new(Store)
	s.mu.blobs = make(map[string][]byte)
	return s
}

// Fail makes every call from now on fail with this error, Commit of open writers
// included; nil heals the store.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.fail = err
}

// Location is "memory".
func (s *Store) Location() string { return "memory" }

// enter locks the store if the call may be made.
func (s *Store) enter(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := blobstore.CheckName(name); err != nil {
		return err
	}
	s.mu.Lock()
	if s.mu.fail != nil {
		err := fmt.Errorf("blob %s: %w", name, s.mu.fail)
		s.mu.Unlock()
		return err
	}
	return nil
}

// Create opens a buffer.
func (s *Store) Create(ctx context.Context, name string) (blobstore.Writer, error) {
	if err := s.enter(ctx, name); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if _, ok := s.mu.blobs[name]; ok {
		return nil, fmt.Errorf("%w: %s", blobstore.ErrExists, name)
	}
	return &writer{store: s, name: name}, nil
}

// Open reads the blob as it is: it cannot change.
func (s *Store) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := s.enter(ctx, name); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	b, ok := s.mu.blobs[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", blobstore.ErrNotFound, name)
	}
	if offset < 0 {
		return nil, fmt.Errorf("open blob %s: negative offset %d", name, offset)
	}
	b = b[min(offset, int64(len(b))):]
	if length >= 0 {
		b = b[:min(length, int64(len(b)))]
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Stat returns the blob's size.
func (s *Store) Stat(ctx context.Context, name string) (blobstore.Info, error) {
	if err := s.enter(ctx, name); err != nil {
		return blobstore.Info{}, err
	}
	defer s.mu.Unlock()
	b, ok := s.mu.blobs[name]
	if !ok {
		return blobstore.Info{}, fmt.Errorf("%w: %s", blobstore.ErrNotFound, name)
	}
	return blobstore.Info{Name: name, Size: int64(len(b))}, nil
}

// List lists the blobs as they are when it is called.
func (s *Store) List(ctx context.Context, prefix string, fn func(blobstore.Info) error) error {
	infos, err := s.infos(ctx, prefix)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if err := fn(info); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) infos(ctx context.Context, prefix string) ([]blobstore.Info, error) {
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		if err := blobstore.CheckName(prefix[:i]); err != nil {
			return nil, err
		}
	}
	if err := s.enter(ctx, "x"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var infos []blobstore.Info
	for name, b := range s.mu.blobs {
		if strings.HasPrefix(name, prefix) {
			infos = append(infos, blobstore.Info{Name: name, Size: int64(len(b))})
		}
	}
	slices.SortFunc(infos, func(a, b blobstore.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

// Delete removes the blob.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := s.enter(ctx, name); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, ok := s.mu.blobs[name]; !ok {
		return fmt.Errorf("%w: %s", blobstore.ErrNotFound, name)
	}
	delete(s.mu.blobs, name)
	return nil
}

// Corrupt replaces a blob's content, or makes one, against all rules: for tests of
// what reads it.
func (s *Store) Corrupt(name string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.blobs[name] = slices.Clone(content)
}

// writer is one blob being written.
type writer struct {
	store *Store
	name  string
	buf   []byte
	done  bool
}

func (w *writer) Write(p []byte) (int, error) {
	if w.done {
		return 0, errFinished
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

func (w *writer) Commit(ctx context.Context) error {
	if w.done {
		return errFinished
	}
	w.done = true
	if err := w.store.enter(ctx, w.name); err != nil {
		return err
	}
	defer w.store.mu.Unlock()
	if _, ok := w.store.mu.blobs[w.name]; ok {
		return fmt.Errorf("%w: %s", blobstore.ErrExists, w.name)
	}
	w.store.mu.blobs[w.name] = w.buf
	return nil
}

func (w *writer) Abort() { w.done, w.buf = true, nil }
