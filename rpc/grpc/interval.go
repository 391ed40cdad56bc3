package grpc

import (
	"context"
	"time"

	"github.com/weirflow/weir/proto/clientpb"
	"github.com/weirflow/weir/rpc"
)

// CheckpointInterval implements rpc.ClientGateway.
func (c *Client) CheckpointInterval(ctx context.Context, r rpc.IntervalRequest) (rpc.IntervalReply, error) {
	p, err := c.pb.CheckpointInterval(ctx, &clientpb.IntervalRequest{Job: r.Job, Set: r.Set, Interval: int64(r.Interval)})
	if err != nil {
		return rpc.IntervalReply{}, ErrorOf(err)
	}
	return rpc.IntervalReply{Interval: time.Duration(p.GetInterval())}, nil
}

// CheckpointInterval serves clients.
func (s *Server) CheckpointInterval(ctx context.Context, p *clientpb.IntervalRequest) (*clientpb.IntervalReply, error) {
	r, err := s.gateway.CheckpointInterval(ctx, rpc.IntervalRequest{Job: p.GetJob(), Set: p.GetSet(), Interval: time.Duration(p.GetInterval())})
	if err != nil {
		return nil, StatusOf(err)
	}
	return &clientpb.IntervalReply{Interval: int64(r.Interval)}, nil
}
