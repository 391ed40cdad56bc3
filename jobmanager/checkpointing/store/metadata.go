package store

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
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
	return m.WriteAs(ctx, snapshotmeta.MetadataName(s.Header.Job, s.Header.Checkpoint), s)
}

// WriteAs is Write under another name: a savepoint's.
func (m *MetadataStore) WriteAs(ctx context.Context, name string, s *snapshotmeta.Snapshot) (Metadata, error) {
	want, eerr, werr := m.create(ctx, name, s)
	if eerr != nil {
		return Metadata{}, eerr
	}
	switch err := m.compare(ctx, name, want); {
	case err == nil:
		return Metadata{Name: name, Bytes: want.size}, nil
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

// content is what bytes are compared by, so that a large file need not be in memory.
type content struct {
	size int64
	sum  [sha256.Size]byte
}

// digest sums up what is written to it, and passes it on while that succeeds.
type digest struct {
	hash hash.Hash
	size int64
	to   io.Writer // nil: nowhere
	err  error     // the first of to
}

func (d *digest) Write(p []byte) (int, error) {
	d.hash.Write(p) // never fails
	d.size += int64(len(p))
	if d.to != nil && d.err == nil {
		_, d.err = d.to.Write(p)
	}
	return len(p), nil
}

func (d *digest) content() (c content) {
	c.size = d.size
	d.hash.Sum(c.sum[:0])
	return c
}

// create writes the blob, piece by piece, and says what its bytes are to be whatever
// became of it. invalid: there is nothing to be written. Another error leaves the
// outcome open.
func (m *MetadataStore) create(ctx context.Context, name string, s *snapshotmeta.Snapshot) (want content, invalid, err error) {
	w, err := m.store.Create(ctx, name)
	d := &digest{hash: sha256.New(), err: err}
	buffered := bufio.NewWriterSize(d, pieceBytes)
	if err == nil {
		d.to = w
		defer w.Abort()
	}
	if invalid := snapshotmeta.Write(buffered, s); invalid != nil {
		return content{}, invalid, nil
	}
	_ = buffered.Flush() // a digest takes everything
	if d.err != nil {
		return d.content(), nil, d.err
	}
	return d.content(), nil, w.Commit(ctx)
}

// pieceBytes is how much of a _metadata file is in memory at a time.
const pieceBytes = 64 << 10

const (
	firstPause = 20 * time.Millisecond
	maxPause   = time.Second
)

// compare reads the blob until there is an answer, and compares it: nil,
// blobstore.ErrNotFound or ErrDiffers. If ctx ends before, [ha.ErrDoubtful].
func (m *MetadataStore) compare(ctx context.Context, name string, want content) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		got, err := m.read(ctx, name, want.size)
		switch {
		case err == nil && got == want:
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

// read sums up the blob's bytes, at most one more than size.
func (m *MetadataStore) read(ctx context.Context, name string, size int64) (content, error) {
	r, err := m.store.Open(ctx, name, 0, -1)
	if err != nil {
		return content{}, err
	}
	defer r.Close()
	d := &digest{hash: sha256.New()}
	if _, err := io.Copy(d, io.LimitReader(r, size+1)); err != nil {
		return content{}, err
	}
	return d.content(), nil
}

// Read reads the snapshot that a link names.
func (m *MetadataStore) Read(ctx context.Context, name string) (*snapshotmeta.Snapshot, error) {
	return snapshotmeta.Open(ctx, m.store, name)
}
