package client

import (
	"context"
	"time"

	"github.com/weirflow/weir/rpc"
	weirgrpc "github.com/weirflow/weir/rpc/grpc"
)

// patience is how long a call that is under way is taken up again after the JobManager
// was lost: another one takes over, or it comes back.
const patience = time.Minute

// TakeSnapshot takes a checkpoint or a savepoint, and waits for it as long as ctx
// allows. The request id makes it safe to ask again.
func (c *Client) TakeSnapshot(ctx context.Context, r rpc.SnapshotRequest) (rpc.SnapshotReply, error) {
	return persist(ctx, c, r.Job, func(ctx context.Context, cc *weirgrpc.Client) (rpc.SnapshotReply, error) {
		return cc.TakeSnapshot(ctx, r)
	})
}

// StopJob ends a job with a savepoint, and waits for its end as long as ctx allows. The
// request id makes it safe to ask again.
func (c *Client) StopJob(ctx context.Context, r rpc.StopRequest) (rpc.StopReply, error) {
	return persist(ctx, c, r.Job, func(ctx context.Context, cc *weirgrpc.Client) (rpc.StopReply, error) { return cc.StopJob(ctx, r) })
}

// CheckpointInterval says how often a job takes checkpoints, and changes it.
func (c *Client) CheckpointInterval(ctx context.Context, r rpc.IntervalRequest) (rpc.IntervalReply, error) {
	return call(ctx, c, c.opts.CallTimeout, func(ctx context.Context, cc *weirgrpc.Client) (rpc.IntervalReply, error) {
		return cc.CheckpointInterval(ctx, r)
	})
}

// persist asks until there is an answer: the JobManager says with CodeDeadlineExceeded
// that what was asked for is under way. One that cannot be reached is tried again for a
// while, if it was there when we began: it may have been lost after it had been asked.
func persist[T any](ctx context.Context, c *Client, job string, ask func(ctx context.Context, cc *weirgrpc.Client) (T, error)) (reply T, err error) {
	if _, err := c.Get(ctx, job); err != nil {
		return reply, err
	}
	heard := time.Now()
	for {
		reply, err := call(ctx, c, c.opts.CallTimeout, ask)
		switch code := rpc.CodeOf(err); {
		case err == nil || expired(ctx) != nil:
			return reply, err
		case code == rpc.CodeDeadlineExceeded:
			heard = time.Now()
		case (code == rpc.CodeUnavailable || code == rpc.CodeNotLeader) && time.Since(heard) < patience:
		default:
			return reply, err
		}
		if err := rest(ctx); err != nil {
			return reply, err
		}
	}
}

// rest waits a little between two calls.
func rest(ctx context.Context) error {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
