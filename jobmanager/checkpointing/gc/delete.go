package gc

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// Spare takes what a later answer says is needed out of the orphans: somebody may have
// started a job from one meanwhile.
func (r *Report) Spare(use rpc.InUse) {
	needed := make(map[string]bool)
	for _, j := range use.Jobs {
		for _, m := range j.Metadata {
			_, name, _ := snapshotmeta.CutForeign(m)
			needed[path.Dir(name)] = true
		}
	}
	r.Orphans = slices.DeleteFunc(r.Orphans, func(o Orphan) bool {
		if !needed[o.Dir] || !hasMetadata(o) {
			return false
		}
		r.Kept = append(r.Kept, kept(o.Dir, o.Files, "a job uses it since"))
		return true
	})
}

// hasMetadata says whether the orphan is a whole snapshot.
func hasMetadata(o Orphan) bool {
	return slices.ContainsFunc(o.Files, func(f blobstore.Info) bool { return path.Base(f.Name) == snapshotmeta.MetadataFile })
}

// Deleted is what [Report.Delete] has done.
type Deleted struct {
	Files int
	Bytes int64
}

// Delete deletes the orphans, of each directory _metadata last. What cannot be deleted is
// in the error, and so is the _metadata beside it; the rest is deleted all the same.
func (r *Report) Delete(ctx context.Context, blobs blobstore.Store) (done Deleted, err error) {
	var errs []error
	for _, o := range r.Orphans {
		failed := false
		for _, last := range []bool{false, true} {
			for _, f := range o.Files {
				if (path.Base(f.Name) == snapshotmeta.MetadataFile) != last || failed && last {
					continue
				}
				if ctx.Err() != nil {
					return done, errors.Join(append(errs, context.Cause(ctx))...)
				}
				if err := blobs.Delete(ctx, f.Name); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
					errs, failed = append(errs, err), true
					continue
				}
				done.Files++
				done.Bytes += f.Size
			}
		}
	}
	if n := len(errs); n > maxErrors {
		errs = append(errs[:maxErrors], fmt.Errorf("and %d more", n-maxErrors))
	}
	return done, errors.Join(errs...)
}

// maxErrors is how many errors of deletions are told.
const maxErrors = 10
