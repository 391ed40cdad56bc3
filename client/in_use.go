package client

import (
	"context"

	"github.com/weirflow/weir/rpc"
	weirgrpc "github.com/weirflow/weir/rpc/grpc"
)

// InUse says what of the checkpoint directory jobs need.
func (c *Client) InUse(ctx context.Context) (rpc.InUse, error) {
	return call(ctx, c, c.opts.CallTimeout, func(ctx context.Context, cc *weirgrpc.Client) (rpc.InUse, error) { return cc.InUse(ctx) })
}
