package snapshot

import (
	"fmt"
	"path"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/snapshotmeta"
)

// place is where the files of a snapshot go: the leaf below dir in a store. Handles are
// relative to dir.
type place struct {
	store     blobstore.Store
	dir, leaf string
}

// place finds the place that the location of a snapshot's options means. That of a
// checkpoint is a directory of the job's; that of a savepoint is absolute, as
// snapshotmeta.Foreign writes it, with an empty store for the checkpoint store itself.
func (o *Options) place(location string) (place, error) {
	root, name, absolute := snapshotmeta.CutForeign(location)
	if !absolute {
		return place{store: o.Store, dir: o.Directory, leaf: location}, nil
	}
	p := place{store: o.Store, leaf: path.Base(name)}
	if dir := path.Dir(name); dir != "." {
		p.dir = dir
	}
	if root == "" {
		return p, nil
	}
	if o.OpenStore == nil {
		return place{}, fmt.Errorf("%w: %s", snapshotmeta.ErrForeign, root)
	}
	var err error
	if p.store, err = o.OpenStore(root); err != nil {
		return place{}, fmt.Errorf("open the savepoint directory %s, which must be there on every host: %w", root, err)
	}
	return p, nil
}
