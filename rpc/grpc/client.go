package grpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/proto/clientpb"
	"github.com/weirflow/weir/rpc"
)

// Client asks a JobManager at one address. It is safe for concurrent use.
type Client struct {
	cc *grpc.ClientConn
	pb clientpb.ClientClient
}

var _ rpc.ClientGateway = (*Client)(nil)

// NewClient makes a client; it connects when it is first used.
func NewClient(address string, creds credentials.TransportCredentials, extra ...grpc.DialOption) (*Client, error) {
	cc, err := connect(address, creds, extra...)
	if err != nil {
		return nil, err
	}
	return &Client{cc: cc, pb: clientpb.NewClientClient(cc)}, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.cc.Close() }

// Submit implements rpc.ClientGateway.
func (c *Client) Submit(ctx context.Context, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	p, err := c.pb.Submit(ctx, submitPB(r))
	if err != nil {
		return rpc.SubmitReply{}, ErrorOf(err)
	}
	id, err := id16("job id", p.GetJob())
	return rpc.SubmitReply{Job: weir.JobID(id), Name: p.GetName(), Existed: p.GetExisted()}, err
}

// List implements rpc.ClientGateway.
func (c *Client) List(ctx context.Context) ([]rpc.JobSummary, error) {
	p, err := c.pb.List(ctx, &clientpb.ListRequest{})
	if err != nil {
		return nil, ErrorOf(err)
	}
	return each(p.GetJobs(), summaryOf)
}

// Get implements rpc.ClientGateway.
func (c *Client) Get(ctx context.Context, job string) (rpc.JobDetail, error) {
	p, err := c.pb.Get(ctx, &clientpb.JobRequest{Job: job})
	if err != nil {
		return rpc.JobDetail{}, ErrorOf(err)
	}
	return detailOf(p)
}

// Cancel implements rpc.ClientGateway.
func (c *Client) Cancel(ctx context.Context, job string) error {
	_, err := c.pb.Cancel(ctx, &clientpb.JobRequest{Job: job})
	return ErrorOf(err)
}

// Checkpoints implements rpc.ClientGateway.
func (c *Client) Checkpoints(ctx context.Context, job string) (rpc.CheckpointList, error) {
	p, err := c.pb.Checkpoints(ctx, &clientpb.JobRequest{Job: job})
	if err != nil {
		return rpc.CheckpointList{}, ErrorOf(err)
	}
	return checkpointListOf(p)
}

// Plan implements rpc.ClientGateway.
func (c *Client) Plan(ctx context.Context, r rpc.SubmitRequest) (rpc.PlanReply, error) {
	p, err := c.pb.Plan(ctx, submitPB(r))
	if err != nil {
		return rpc.PlanReply{}, ErrorOf(err)
	}
	g, err := graphOf(p.GetGraph())
	return rpc.PlanReply{Graph: g, Text: p.GetText(), Slots: int(p.GetSlots()), Warnings: p.GetWarnings()}, err
}

// Cluster implements rpc.ClientGateway.
func (c *Client) Cluster(ctx context.Context) (rpc.ClusterInfo, error) {
	p, err := c.pb.Cluster(ctx, &clientpb.ClusterRequest{})
	if err != nil {
		return rpc.ClusterInfo{}, ErrorOf(err)
	}
	tms, err := each(p.GetTaskManagers(), func(t *clientpb.TaskManagerInfo) (rpc.TaskManagerInfo, error) {
		r, err := registrationOf(t.GetRegistration())
		return rpc.TaskManagerInfo{Registration: r, FreeSlots: int(t.GetFreeSlots()), LastHeartbeat: time.Duration(t.GetLastHeartbeat())}, err
	})
	return rpc.ClusterInfo{
		ClusterID: p.GetClusterId(), Epoch: weir.LeaderEpoch(p.GetEpoch()), CodeID: p.GetCodeId(),
		TaskManagers: tms, Entrypoints: p.GetEntrypoints(), CheckpointDir: p.GetCheckpointDir(),
	}, err
}

// TakeSnapshot implements rpc.ClientGateway.
func (c *Client) TakeSnapshot(ctx context.Context, r rpc.SnapshotRequest) (rpc.SnapshotReply, error) {
	p, err := c.pb.TakeSnapshot(ctx, &clientpb.SnapshotRequest{Job: r.Job, RequestId: r.RequestID, Kind: uint32(r.Kind), Target: r.Target})
	if err != nil {
		return rpc.SnapshotReply{}, ErrorOf(err)
	}
	return rpc.SnapshotReply{
		Checkpoint: weir.CheckpointID(p.GetCheckpoint()), Path: p.GetPath(), Bytes: p.GetBytes(), Duration: time.Duration(p.GetDuration()),
	}, nil
}

// StopJob implements rpc.ClientGateway.
func (c *Client) StopJob(ctx context.Context, r rpc.StopRequest) (rpc.StopReply, error) {
	p, err := c.pb.Stop(ctx, &clientpb.StopRequest{Job: r.Job, RequestId: r.RequestID, Drain: r.Drain, Target: r.Target})
	if err != nil {
		return rpc.StopReply{}, ErrorOf(err)
	}
	status, err := enum("job status", p.GetStatus(), rpc.JobFailed)
	return rpc.StopReply{Checkpoint: weir.CheckpointID(p.GetCheckpoint()), Path: p.GetPath(), Status: status, Failure: p.GetFailure()}, err
}

func submitPB(r rpc.SubmitRequest) *clientpb.SubmitRequest {
	return &clientpb.SubmitRequest{
		Entrypoint: r.Entrypoint, Params: r.Params, Name: r.Name, RequestId: r.RequestID,
		Options: r.Options, Parallelism: int32(r.Parallelism), From: r.From,
	}
}

func summaryOf(p *clientpb.JobSummary) (rpc.JobSummary, error) {
	id, err := id16("job id", p.GetJob())
	if err != nil {
		return rpc.JobSummary{}, err
	}
	status, err := enum("job status", p.GetStatus(), rpc.JobFailed)
	return rpc.JobSummary{
		Job: weir.JobID(id), Name: p.GetName(), Entrypoint: p.GetEntrypoint(), Status: status, Detail: p.GetDetail(),
		Started: timeOf(p.GetStarted()), Ended: timeOf(p.GetEnded()), Tasks: int(p.GetTasks()), Running: int(p.GetRunning()),
		Restarts: int(p.GetRestarts()), LastCheckpoint: weir.CheckpointID(p.GetLastCheckpoint()),
	}, err
}

func detailOf(p *clientpb.JobDetail) (d rpc.JobDetail, err error) {
	if d.JobSummary, err = summaryOf(p.GetSummary()); err != nil {
		return d, err
	}
	d.RequestID, d.Params, d.Options, d.RestoredFrom = p.GetRequestId(), p.GetParams(), p.GetOptions(), p.GetRestoredFrom()
	d.Savepoint, d.Stopping, d.RestoreReason = p.GetSavepoint(), p.GetStopping(), p.GetRestoreReason()
	if p.GetGraph() != nil {
		if d.Graph, err = graphOf(p.GetGraph()); err != nil {
			return d, fmt.Errorf("graph: %w", err)
		}
	}
	if d.Failure, err = failureOf(p.GetFailure()); err != nil {
		return d, err
	}
	d.Tasks, err = each(p.GetTasks(), func(t *clientpb.TaskDetail) (rpc.TaskDetail, error) {
		a, err := attemptOf(t.GetAttempt())
		if err != nil {
			return rpc.TaskDetail{}, err
		}
		state, err := enum("task state", t.GetState(), rpc.TaskFailed)
		if err != nil {
			return rpc.TaskDetail{}, err
		}
		stats, err := statsOf(t.GetStats())
		return rpc.TaskDetail{Attempt: a, Vertex: t.GetVertex(), State: state, TaskManager: t.GetTaskManager(), Stats: stats, Failure: t.GetFailure()}, err
	})
	return d, err
}
