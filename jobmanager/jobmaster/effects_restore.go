package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/snapshotmeta"
)

// completed is what the chain holds, or else the snapshot that the job was started from.
// One that it has claimed becomes the first link, so that it is retained, subsumed and
// deleted like a checkpoint of its own; the newest link is never removed, so a chain that
// is empty never had it. One that it has not claimed is never ours to delete (behaviour
// §11).
func (l *loop) completed(ctx context.Context, chain *store.Chain, from *Origin) ([]checkpointing.CompletedCheckpoint, error) {
	if len(chain.Links()) == 0 && from != nil && from.Claim {
		_, err := chain.Add(ctx, store.Completed{
			Checkpoint: from.Checkpoint, Kind: from.Kind, Metadata: from.Metadata, Bytes: from.Bytes, At: l.m.record.Submitted,
		})
		if err != nil {
			return nil, fmt.Errorf("link the claimed snapshot: %w", err)
		}
	}
	var list []checkpointing.CompletedCheckpoint
	for _, link := range chain.Links() {
		claimed := from.claimed(link.Metadata)
		if claimed {
			if err := l.takeLink(ctx, link.Metadata); err != nil {
				return nil, err
			}
		}
		list = append(list, checkpointing.CompletedCheckpoint{
			ID: link.Checkpoint, Kind: link.Kind, Metadata: link.Metadata, Bytes: link.Bytes,
			Completed: link.At, Owned: claimed || !link.Kind.IsSavepoint(), Foreign: claimed,
		})
	}
	if len(list) == 0 && from != nil {
		list = append(list, checkpointing.CompletedCheckpoint{
			ID: from.Checkpoint, Kind: from.Kind, Metadata: from.Metadata, Bytes: from.Bytes, Foreign: true,
		})
	}
	return list, l.shared(ctx, list)
}

// takeLink removes a claimed snapshot from the chain of the job that took it, if that was
// one of this cluster: from now on it is a link of ours alone, and deleted with that.
func (l *loop) takeLink(ctx context.Context, metadata string) error {
	location, name, foreign := snapshotmeta.CutForeign(metadata)
	if foreign && location != "" && location != l.deps.Blobs.Location() {
		return nil
	}
	job, err := weir.ParseJobID(path.Dir(path.Dir(name)))
	if err != nil || job == l.m.record.Job {
		return nil // a savepoint's directory
	}
	return l.deps.Jobs.DropLink(ctx, job, name)
}

// errSome ends a listing that has found something.
var errSome = errors.New("there is one")

// shared notes the shared files that our own retained snapshots name. Their _metadata is
// read only if the job has shared files at all.
func (l *loop) shared(ctx context.Context, list []checkpointing.CompletedCheckpoint) error {
	if len(list) == 0 {
		return nil
	}
	const dir = snapshotmeta.SharedDir + "/"
	err := l.deps.Blobs.List(ctx, snapshotmeta.JobDir(l.m.record.Job)+"/"+dir, func(blobstore.Info) error { return errSome })
	if err == nil {
		return nil
	}
	if !errors.Is(err, errSome) {
		return fmt.Errorf("list shared files: %w", err)
	}
	for i := range list {
		c := &list[i]
		if _, _, elsewhere := snapshotmeta.CutForeign(c.Metadata); elsewhere || c.Foreign {
			continue
		}
		s, err := snapshotmeta.Open(ctx, l.deps.Blobs, c.Metadata)
		if err != nil {
			return fmt.Errorf("read which shared files checkpoint %d names: %w", c.ID, err)
		}
		s.Handles(func(h weir.StateHandle) {
			if strings.HasPrefix(h.File, dir) {
				c.Shared = append(c.Shared, h.File)
			}
		})
		slices.Sort(c.Shared)
		c.Shared = slices.Compact(c.Shared)
	}
	return nil
}
