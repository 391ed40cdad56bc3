package grpc

import (
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/proto/clientpb"
	"github.com/weirflow/weir/rpc"
)

// Submit serves clients.
func (s *Server) Submit(ctx context.Context, p *clientpb.SubmitRequest) (*clientpb.SubmitReply, error) {
	r, err := s.gateway.Submit(ctx, submitOf(p))
	if err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.SubmitReply{Job: r.Job[:], Name: r.Name, Existed: r.Existed}, nil
}

// List serves clients.
func (s *Server) List(ctx context.Context, _ *clientpb.ListRequest) (*clientpb.ListReply, error) {
	jobs, err := s.gateway.List(ctx)
	if err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.ListReply{Jobs: every(jobs, summaryPB)}, nil
}

// Get serves clients.
func (s *Server) Get(ctx context.Context, p *clientpb.JobRequest) (*clientpb.JobDetail, error) {
	d, err := s.gateway.Get(ctx, p.GetJob())
	if err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.JobDetail{
		Summary: summaryPB(d.JobSummary), RequestId: d.RequestID, Params: d.Params, Options: d.Options,
		Graph: graphPB(d.Graph), Failure: failurePB(d.Failure), RestoredFrom: d.RestoredFrom,
		Savepoint: d.Savepoint, Stopping: d.Stopping, RestoreReason: d.RestoreReason,
		Tasks: every(d.Tasks, func(t rpc.TaskDetail) *clientpb.TaskDetail {
			t.Stats.Attempt = t.Attempt
			return &clientpb.TaskDetail{
				Attempt: attemptPB(t.Attempt), Vertex: t.Vertex, State: uint32(t.State), TaskManager: t.TaskManager,
				Stats: statsPB(t.Stats), Failure: t.Failure,
			}
		}),
	}, nil
}

// Cancel serves clients.
func (s *Server) Cancel(ctx context.Context, p *clientpb.JobRequest) (*clientpb.CancelReply, error) {
	if err := s.gateway.Cancel(ctx, p.GetJob()); err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.CancelReply{}, nil
}

// Checkpoints serves clients.
func (s *Server) Checkpoints(ctx context.Context, p *clientpb.JobRequest) (*clientpb.CheckpointList, error) {
	l, err := s.gateway.Checkpoints(ctx, p.GetJob())
	if err != nil {
		return nil, StatusOf(err)
	}
	return checkpointListPB(l), nil
}

// Plan serves clients.
func (s *Server) Plan(ctx context.Context, p *clientpb.SubmitRequest) (*clientpb.PlanReply, error) {
	r, err := s.gateway.Plan(ctx, submitOf(p))
	if err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.PlanReply{Graph: graphPB(r.Graph), Text: r.Text, Slots: int32(r.Slots), Warnings: r.Warnings}, nil
}

// Cluster serves clients.
func (s *Server) Cluster(ctx context.Context, _ *clientpb.ClusterRequest) (*clientpb.ClusterInfo, error) {
	c, err := s.gateway.Cluster(ctx)
	if err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.ClusterInfo{
		ClusterId: c.ClusterID, Epoch: uint64(c.Epoch), CodeId: c.CodeID, Entrypoints: c.Entrypoints, CheckpointDir: c.CheckpointDir,
		TaskManagers: every(c.TaskManagers, func(t rpc.TaskManagerInfo) *clientpb.TaskManagerInfo {
			return &clientpb.TaskManagerInfo{Registration: registrationPB(t.Registration), FreeSlots: int32(t.FreeSlots), LastHeartbeat: int64(t.LastHeartbeat)}
		}),
	}, nil
}

// TakeSnapshot serves clients.
func (s *Server) TakeSnapshot(ctx context.Context, p *clientpb.SnapshotRequest) (*clientpb.SnapshotReply, error) {
	kind, err := enum("snapshot kind", p.GetKind(), weir.NativeSavepoint)
	if err != nil {
		return nil, StatusOf(&rpc.Error{Code: rpc.CodeInvalidArgument, Message: err.Error()})
	}
	r, err := s.gateway.TakeSnapshot(ctx, rpc.SnapshotRequest{Job: p.GetJob(), RequestID: p.GetRequestId(), Kind: kind, Target: p.GetTarget()})
	if err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.SnapshotReply{Checkpoint: int64(r.Checkpoint), Path: r.Path, Bytes: r.Bytes, Duration: int64(r.Duration)}, nil
}

// Stop serves clients.
func (s *Server) Stop(ctx context.Context, p *clientpb.StopRequest) (*clientpb.StopReply, error) {
	r, err := s.gateway.StopJob(ctx, rpc.StopRequest{Job: p.GetJob(), RequestID: p.GetRequestId(), Drain: p.GetDrain(), Target: p.GetTarget()})
	if err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.StopReply{Checkpoint: int64(r.Checkpoint), Path: r.Path, Status: uint32(r.Status), Failure: r.Failure}, nil
}

func submitOf(p *clientpb.SubmitRequest) rpc.SubmitRequest {
	return rpc.SubmitRequest{
		Entrypoint: p.GetEntrypoint(), Params: p.GetParams(), Name: p.GetName(), RequestID: p.GetRequestId(),
		Options: p.GetOptions(), Parallelism: int(p.GetParallelism()), From: p.GetFrom(),
	}
}

func summaryPB(j rpc.JobSummary) *clientpb.JobSummary {
	return &clientpb.JobSummary{
		Job: j.Job[:], Name: j.Name, Entrypoint: j.Entrypoint, Status: uint32(j.Status), Detail: j.Detail,
		Started: millis(j.Started), Ended: millis(j.Ended), Tasks: int32(j.Tasks), Running: int32(j.Running),
		Restarts: int32(j.Restarts), LastCheckpoint: int64(j.LastCheckpoint),
	}
}
