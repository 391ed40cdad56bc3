package grpc

import (
	"context"
	"errors"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/proto/clientpb"
	"github.com/weirflow/weir/rpc"
)

// InUse implements rpc.ClientGateway.
func (c *Client) InUse(ctx context.Context) (rpc.InUse, error) {
	p, err := c.pb.InUse(ctx, &clientpb.InUseRequest{})
	if err != nil {
		return rpc.InUse{}, ErrorOf(err)
	}
	jobs, err := each(p.GetJobs(), jobInUseOf)
	return rpc.InUse{
		ClusterID: p.GetClusterId(), Epoch: weir.LeaderEpoch(p.GetEpoch()), CheckpointDir: p.GetCheckpointDir(), Jobs: jobs,
	}, err
}

func jobInUseOf(p *clientpb.JobInUse) (rpc.JobInUse, error) {
	j := rpc.JobInUse{Name: p.GetName(), Metadata: p.GetMetadata(), Saving: p.GetSaving(), Unknown: p.GetUnknown()}
	for _, id := range p.GetPending() {
		j.Pending = append(j.Pending, weir.CheckpointID(id))
	}
	var err, serr error
	j.Job, err = id16("job id", p.GetJob())
	j.Status, serr = enum("job status", p.GetStatus(), rpc.JobFailed)
	return j, errors.Join(err, serr)
}

// InUse serves clients.
func (s *Server) InUse(ctx context.Context, _ *clientpb.InUseRequest) (*clientpb.InUseReply, error) {
	u, err := s.gateway.InUse(ctx)
	if err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.InUseReply{
		ClusterId: u.ClusterID, Epoch: uint64(u.Epoch), CheckpointDir: u.CheckpointDir, Jobs: every(u.Jobs, jobInUsePB),
	}, nil
}

func jobInUsePB(j rpc.JobInUse) *clientpb.JobInUse {
	p := &clientpb.JobInUse{Job: j.Job[:], Name: j.Name, Status: uint32(j.Status), Metadata: j.Metadata, Saving: j.Saving, Unknown: j.Unknown}
	for _, id := range j.Pending {
		p.Pending = append(p.Pending, int64(id))
	}
	return p
}
