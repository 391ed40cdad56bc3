package store

import (
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
)

// Completed is a snapshot that is ready to become a link.
type Completed struct {
	Checkpoint weir.CheckpointID
	Kind       weir.SnapshotKind
	Metadata   string // blob name of its _metadata
	Bytes      int64  // of the whole snapshot
	At         time.Time
}

// Chain is a job's chain of completed checkpoints, as its leader sees it.
type Chain struct{}

// OpenChain reads the chain of a job.
func OpenChain(ctx context.Context, jobs *ha.JobStore, job weir.JobID) (*Chain, error) {
	return nil, ha.ErrUnavailable
}

// Links are the links now, oldest first.
func (c *Chain) Links() []ha.Link { return nil }

// Newest is the link that a restart resumes from.
func (c *Chain) Newest() (ha.Link, bool) { return ha.Link{}, false }

// Add makes the snapshot the newest link. From then on it is complete; the permit
// is the proof. Errors: [ha.ErrNotLeader] and [ha.ErrOvertaken] mean that it is not a
// link and will not be one by us: stop, and resolve the job anew from the chain.
func (c *Chain) Add(ctx context.Context, s Completed) (CommitPermit, error) {
	return CommitPermit{}, ha.ErrDoubtful
}

// Remove removes a subsumed checkpoint's link. Its files stay; see [Cleaner].
func (c *Chain) Remove(ctx context.Context, id weir.CheckpointID) error { return ha.ErrDoubtful }

// CheckpointIDCounter hands out a job's checkpoint ids.
type CheckpointIDCounter struct {
	jobs *ha.JobStore
	job  weir.JobID
}

// NewCheckpointIDCounter returns the counter of a job.
func NewCheckpointIDCounter(jobs *ha.JobStore, job weir.JobID) *CheckpointIDCounter {
	return &CheckpointIDCounter{jobs: jobs, job: job}
}

// Next takes the next id: larger than every one taken before, by whatever leader.
func (c *CheckpointIDCounter) Next(ctx context.Context) (weir.CheckpointID, error) {
	return c.jobs.NextCheckpointID(ctx, c.job)
}
