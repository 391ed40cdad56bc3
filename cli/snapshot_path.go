package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// openSnapshotDir opens, for reading, the store that a snapshot's path lies in, and
// returns the blob name of its _metadata there. The path is this machine's, and names
// the snapshot's directory or the _metadata in it.
func openSnapshotDir(path string) (*fs.Store, string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, "", usageError{err}
	}
	if _, err := os.Stat(abs); errors.Is(err, os.ErrNotExist) {
		return nil, "", noSnapshot(path, "there is nothing at this path on this machine")
	}
	location, name, err := snapshotmeta.SplitLocation(abs)
	if err != nil {
		return nil, "", noSnapshot(path, "a snapshot's path ends in JOB/chk-N, or in the name of its directory")
	}
	store, err := fs.OpenExisting(location)
	if err != nil {
		return nil, "", noSnapshot(path, err.Error())
	}
	return store, name, nil
}

func noSnapshot(path, why string) error {
	return &rpc.Error{
		Code: rpc.CodeNotFound, Message: fmt.Sprintf("%s: no snapshot there: %s", path, why),
		Hint: "give the path that `weir checkpoints JOB` prints, where its files can be read",
	}
}

// snapshotError says what is wrong with a snapshot, and what to do.
func snapshotError(path string, err error) error {
	fault := func(hint, format string, args ...any) error {
		return &rpc.Error{Code: rpc.CodeFailedPrecondition, Message: path + ": " + fmt.Sprintf(format, args...), Hint: hint}
	}
	switch {
	case errors.Is(err, snapshotmeta.ErrNotFound):
		return noSnapshot(path, "the directory has no "+snapshotmeta.MetadataFile+": it was never complete, or is being deleted")
	case errors.Is(err, snapshotmeta.ErrNotSnapshot):
		return fault("give the directory of a checkpoint or savepoint", "this is no snapshot: %v", err)
	case errors.Is(err, snapshotmeta.ErrNewerVersion):
		return fault("use the version that wrote it, or a later one", "%v", err)
	case errors.Is(err, snapshotmeta.ErrTruncated):
		return fault("choose an earlier snapshot, or copy this one again", "it is cut: %v", err)
	case errors.Is(err, snapshotmeta.ErrCorrupt):
		return fault("choose an earlier snapshot, or copy this one again", "it is damaged: %v", err)
	default:
		return fmt.Errorf("%s: %w", path, err)
	}
}
