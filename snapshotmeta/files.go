package snapshotmeta

import (
	"context"
	"io"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
)

// Files opens the bytes of handles. Its method Open is a statebackend.OpenFunc.
type Files struct {
	// Store is the checkpoint store.
	Store blobstore.Store
	// Dir is the job's directory in it, to which handles are relative.
	Dir string
	// Foreign opens another store by its location, for handles that [Rebase] made
	// absolute. Nil: there are none, and such a handle is an [ErrForeign].
	Foreign func(location string) (blobstore.Store, error)
}

// Open opens a handle for reading. Length and checksum are verified at the end:
// the last Read returns an [ErrCorrupt] or [ErrTruncated] instead of io.EOF.
func (f Files) Open(ctx context.Context, h weir.StateHandle) (io.ReadCloser, error) {
	return nil, ErrForeign
}

// OpenHandle opens a handle that is relative to dir in the store.
func OpenHandle(ctx context.Context, store blobstore.Store, dir string, h weir.StateHandle) (io.ReadCloser, error) {
	return Files{Store: store, Dir: dir}.Open(ctx, h)
}

// Rebase makes a handle absolute: location is that of its store, dir the directory
// that the handle is relative to. A restore from another job's snapshot deploys such
// handles. Inline handles are returned as they are.
func Rebase(h weir.StateHandle, location, dir string) weir.StateHandle { return h }

// SplitLocation cuts the path of a snapshot, as people write it, into the location
// of a store and the name of its _metadata in it: /data/ck/<job>/chk-9 and
// /data/ck/<job>/chk-9/_metadata both become /data/ck and <job>/chk-9/_metadata.
func SplitLocation(path string) (location, name string, err error) { return "", "", ErrNotFound }
