package daemon

import (
	"context"

	"go.uber.org/zap"

	"github.com/weirflow/weir/cli"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
)

// local runs a cluster in this process. What it logs below warnings is left out:
// the command shows the job's progress itself.
func (p *process) local(ctx context.Context, o cli.LocalOptions) (rpc.ClientGateway, func(context.Context) error, error) {
	c, err := minicluster.New(minicluster.Options{
		Catalog: p.catalog, TaskManagers: 1, Slots: o.Slots, Dir: o.CheckpointDir, OpenStore: new(foreignStores).open, CodeID: p.codeID,
		Logger: newLogger(p.logs).WithOptions(zap.IncreaseLevel(zap.WarnLevel)),
	})
	if err != nil {
		return nil, nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, nil, err
	}
	return c.Gateway(), c.Stop, nil
}
