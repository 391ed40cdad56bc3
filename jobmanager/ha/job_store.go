package ha

import (
	"context"

	"github.com/weirflow/weir"
)

// JobStore is the leader's record of its jobs. It keeps no copy: what it returns
// was read. Any goroutine may call it; two writers of one job's status or chain at
// a time is the caller's mistake, and ends in a [*ConflictError] or [ErrOvertaken].
type JobStore struct {
	reg   Registry
	guard weir.LeaderEpoch
}

// NewJobStore returns the store of the leader with this epoch.
func NewJobStore(reg Registry, epoch weir.LeaderEpoch) *JobStore {
	return &JobStore{reg: reg, guard: epoch}
}

// Submit records a job under rec.Job, with its first status. If a job of this
// request id is recorded, live or not, it is returned instead and created is false.
// If another live job has the name the error is a [*NameTakenError].
func (s *JobStore) Submit(ctx context.Context, rec JobRecord, first JobStatus) (job Job, created bool, err error) {
	return Job{}, false, ErrDoubtful
}

// Jobs returns all recorded jobs, live and ended, in order of submission.
func (s *JobStore) Jobs(ctx context.Context) ([]Job, error) { return nil, ErrUnavailable }

// Job returns one job, or [ErrNoJob].
func (s *JobStore) Job(ctx context.Context, id weir.JobID) (Job, error) {
	return Job{}, ErrUnavailable
}

// SetStatus replaces the job's status. A terminal status frees the name; after it
// every other status is refused with [ErrTerminal]. Epoch is filled in.
func (s *JobStore) SetStatus(ctx context.Context, id weir.JobID, st JobStatus) error {
	return ErrDoubtful
}

// Remove forgets a job that has ended ([ErrLive] otherwise), with its chain. The
// files of its checkpoints are the caller's to delete or to leave, before.
func (s *JobStore) Remove(ctx context.Context, id weir.JobID) error { return ErrDoubtful }

// NextCheckpointID takes the next id of the job: larger than every id taken before,
// by whatever leader.
func (s *JobStore) NextCheckpointID(ctx context.Context, id weir.JobID) (weir.CheckpointID, error) {
	return 0, ErrDoubtful
}

// Links returns the job's chain, oldest first.
func (s *JobStore) Links(ctx context.Context, id weir.JobID) ([]Link, error) {
	return nil, ErrUnavailable
}

// AddLink adds the next link to the job's chain: Number and Parent are those that
// follow newest, which the caller read or added last (the zero Link: the chain is
// empty). On success the snapshot is complete. [ErrOvertaken] means that the chain
// does not end in newest; [ErrNotLeader] that it was not added and never will be.
func (s *JobStore) AddLink(ctx context.Context, id weir.JobID, newest, next Link) (Link, error) {
	return Link{}, ErrDoubtful
}

// RemoveLink removes a link that is not the newest. One that is absent is no error.
func (s *JobStore) RemoveLink(ctx context.Context, id weir.JobID, number uint64) error {
	return ErrDoubtful
}
