package rpc

import "github.com/weirflow/weir"

// InUse is what of the checkpoint directory is needed. It was put together by a
// JobManager that led before and after, so that no other one has added to it meanwhile.
type InUse struct {
	ClusterID     string
	Epoch         weir.LeaderEpoch
	CheckpointDir string     // as the JobManager knows it
	Jobs          []JobInUse // all that are recorded, also those that have ended
}

// JobInUse is what one job needs.
type JobInUse struct {
	Job    weir.JobID
	Name   string
	Status JobStatus
	// Metadata are the blob names of the _metadata files that links of its chain name,
	// and of the snapshot it would start from without one: LOCATION//NAME in another store.
	Metadata []string
	Pending  []weir.CheckpointID // checkpoints under way
	Saving   bool                // a savepoint is under way
	// Unknown says why it is not known what the job needs; else it is empty.
	Unknown string
}
