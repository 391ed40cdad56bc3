package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/snapshotmeta"
)

// MetadataStore writes and reads _metadata files in the checkpoint store. It keeps
// nothing.
type MetadataStore struct {
	store blobstore.Store
}

// NewMetadataStore returns one over the checkpoint store.
func NewMetadataStore(store blobstore.Store) *MetadataStore { return &MetadataStore{store: store} }

// Metadata is a _metadata file that was written.
type Metadata struct {
	Name  string // of the blob in the checkpoint store
	Bytes int64  // its size
}

// Write writes the snapshot's _metadata by exclusive create, reads it back and
// compares. A file that is already there with these bytes is ours, whose answer was
// lost; one with others is an [ErrExists]. After any error but [ha.ErrDoubtful] the
// snapshot must not be linked; a file that appears later all the same is nobody's,
// since ids are not used twice.
func (m *MetadataStore) Write(ctx context.Context, s *snapshotmeta.Snapshot) (Metadata, error) {
	var content bytes.Buffer
	if err := snapshotmeta.Write(&content, s); err != nil {
		return Metadata{}, err
	}
	name := snapshotmeta.MetadataName(s.Header.Job, s.Header.Checkpoint)
	werr := m.create(ctx, name, content.Bytes())
	switch err := m.compare(ctx, name, content.Bytes()); {
	case err == nil:
		return Metadata{Name: name, Bytes: int64(content.Len())}, nil
	case werr == nil:
		return Metadata{}, fmt.Errorf("metadata of checkpoint %d: %w", s.Header.Checkpoint, err)
	case errors.Is(err, ha.ErrDoubtful):
		return Metadata{}, fmt.Errorf("metadata of checkpoint %d: %w: %w", s.Header.Checkpoint, err, werr)
	case errors.Is(err, ErrDiffers) && errors.Is(werr, blobstore.ErrExists):
		return Metadata{}, fmt.Errorf("metadata of checkpoint %d: %w: %s in %s", s.Header.Checkpoint, ErrExists, name, m.store.Location())
	default:
		return Metadata{}, fmt.Errorf("metadata of checkpoint %d: %w", s.Header.Checkpoint, werr)
	}
}

// create writes the blob. Its error leaves the outcome open.
func (m *MetadataStore) create(ctx context.Context, name string, content []byte) error {
	w, err := m.store.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Commit(ctx)
}

const (
	firstPause = 20 * time.Millisecond
	maxPause   = time.Second
)

// compare reads the blob until there is an answer, and compares it: nil,
// blobstore.ErrNotFound or ErrDiffers. If ctx ends before, [ha.ErrDoubtful].
func (m *MetadataStore) compare(ctx context.Context, name string, content []byte) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		got, err := m.read(ctx, name, len(content))
		switch {
		case err == nil && bytes.Equal(got, content):
			return nil
		case err == nil:
			return fmt.Errorf("%w: %s in %s", ErrDiffers, name, m.store.Location())
		case errors.Is(err, blobstore.ErrNotFound):
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%w: read back: %w (%w)", ha.ErrDoubtful, err, context.Cause(ctx))
		}
	}
}

// read returns the blob's bytes, at most one more than want.
func (m *MetadataStore) read(ctx context.Context, name string, want int) ([]byte, error) {
	r, err := m.store.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, int64(want)+1))
}

// Read reads the snapshot that a link names.
func (m *MetadataStore) Read(ctx context.Context, name string) (*snapshotmeta.Snapshot, error) {
	return snapshotmeta.Open(ctx, m.store, name)
}
