package jobmanager

import (
	"context"

	"github.com/weirflow/weir/rpc"
)

// Submit starts a job, or finds the one with this request id.
func (j *JobManager) Submit(ctx context.Context, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	return rpc.SubmitReply{}, &rpc.NotLeaderError{}
}

// List lists the jobs, newest first.
func (j *JobManager) List(ctx context.Context) ([]rpc.JobSummary, error) {
	return nil, &rpc.NotLeaderError{}
}

// Get shows one job.
func (j *JobManager) Get(ctx context.Context, job string) (rpc.JobDetail, error) {
	return rpc.JobDetail{}, &rpc.NotLeaderError{}
}

// Cancel ends a job. Cancelling one that is cancelling or canceled is no error.
func (j *JobManager) Cancel(ctx context.Context, job string) error { return &rpc.NotLeaderError{} }

// Checkpoints lists a job's recent checkpoints.
func (j *JobManager) Checkpoints(ctx context.Context, job string) (rpc.CheckpointList, error) {
	return rpc.CheckpointList{}, &rpc.NotLeaderError{}
}

// Plan shows what a submission would run, and starts nothing.
func (j *JobManager) Plan(ctx context.Context, r rpc.SubmitRequest) (rpc.PlanReply, error) {
	return rpc.PlanReply{}, &rpc.NotLeaderError{}
}

// Cluster describes the cluster.
func (j *JobManager) Cluster(ctx context.Context) (rpc.ClusterInfo, error) {
	return rpc.ClusterInfo{}, &rpc.NotLeaderError{}
}
