package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/snapshotmeta"
)

// probeFile is written into a savepoint's directory, and deleted, before any task is
// asked to write there.
const probeFile = "_probe"

// initializeLocation proves that a savepoint can be written to its directory, which makes
// the directories above it, and that no other is there.
func (l *loop) initializeLocation(ctx context.Context, a checkpointing.InitializeLocation) Event {
	failed := func(reason weir.FailureReason, err error) Event {
		return Checkpointing{checkpointing.LocationFailed{Checkpoint: a.Checkpoint, Reason: reason, Message: err.Error()}}
	}
	root, name, foreign := snapshotmeta.CutForeign(a.Location)
	if !foreign {
		return failed(weir.TriggerCheckpointFailure, fmt.Errorf("%q is not where a savepoint can be", a.Location))
	}
	blobs, err := l.blobsAt(root, root != "")
	if err != nil {
		return failed(weir.IOException, fmt.Errorf("savepoint directory: %w", err))
	}
	if _, err := blobs.Stat(ctx, path.Join(name, snapshotmeta.MetadataFile)); err == nil {
		return failed(weir.TriggerCheckpointFailure, fmt.Errorf("there is a snapshot in %s already", path.Join(blobs.Location(), name)))
	} else if !errors.Is(err, blobstore.ErrNotFound) {
		return failed(weir.IOException, fmt.Errorf("savepoint directory: %w", err))
	}
	if err := probe(ctx, blobs, path.Join(name, probeFile)); err != nil {
		return failed(weir.IOException, fmt.Errorf("savepoint directory cannot be written: %w", err))
	}
	return Checkpointing{checkpointing.LocationInitialized{Checkpoint: a.Checkpoint}}
}

// probe writes a blob and deletes it.
func probe(ctx context.Context, blobs blobstore.Store, name string) error {
	w, err := blobs.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(make([]byte, probeBytes)); err != nil {
		return err
	}
	if err := w.Commit(ctx); err != nil {
		return err
	}
	if err := blobs.Delete(ctx, name); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
		return err
	}
	return nil
}

// probeBytes is how much room there must be at least.
const probeBytes = 64 << 10

// placeOf is the store and the name of a snapshot's _metadata, and how the name is shown
// to whoever does not know the store.
func (l *loop) placeOf(a checkpointing.WriteMetadata) (blobs blobstore.Store, name, shown string, err error) {
	if !a.Kind.IsSavepoint() {
		name = snapshotmeta.MetadataName(l.spec.Job, a.Checkpoint)
		return l.deps.Blobs, name, name, nil
	}
	root, dir, _ := snapshotmeta.CutForeign(a.Location)
	name = path.Join(dir, snapshotmeta.MetadataFile)
	if root == "" {
		return l.deps.Blobs, name, name, nil
	}
	blobs, err = l.blobsAt(root, true)
	return blobs, name, snapshotmeta.Foreign(root, name), err
}

// recordStop records a stop until that is known to have happened. A job that has ended
// has none.
func (l *loop) recordStop(ctx context.Context, a RecordStop) Event {
	s := ha.Stop{
		RequestID: a.Stop.Request, Kind: a.Stop.Kind, Directory: a.Stop.Directory,
		Failure: a.Failure, Checkpoint: a.Checkpoint, Metadata: a.Metadata,
	}
	if planted.Is(planted.StopNotRecorded) {
		return StopRecorded{Request: a.Stop.Request}
	}
	err := l.deps.Jobs.SetStop(ctx, l.m.record.Job, s)
	for doubtful(ctx, err) {
		err = l.deps.Jobs.SetStop(ctx, l.m.record.Job, s)
	}
	switch {
	case err == nil:
		return StopRecorded{Request: a.Stop.Request}
	case ctx.Err() != nil:
		return nil
	case overtakenBy(err):
		return Checkpointing{checkpointing.OvertakenByOther{Message: err.Error()}}
	default:
		return StopRecorded{Request: a.Stop.Request, Failure: err.Error()}
	}
}
