package snapshotmeta

import (
	"context"
	"io"

	"github.com/weirflow/weir/blobstore"
)

// Open reads the snapshot whose _metadata has this blob name; the name of its
// directory will do.
func Open(ctx context.Context, store blobstore.Store, name string) (*Snapshot, error) {
	return nil, ErrNotFound
}

// Read reads a whole _metadata file.
func Read(r io.Reader) (*Snapshot, error) { return nil, ErrNotSnapshot }
