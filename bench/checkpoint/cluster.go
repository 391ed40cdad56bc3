package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/processes"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/rpc"
)

// limit is how long a job or a checkpoint may take.
const limit = time.Minute

// cluster is a cluster with the demo's job.
type cluster struct {
	*processes.Cluster
	job weir.JobID
}

// startCluster starts the processes and the job.
func startCluster(ctx context.Context) (*cluster, error) {
	p, err := processes.Start(1)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: p}
	if err := c.submit(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *cluster) submit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := c.Client.Submit(ctx, rpc.SubmitRequest{Entrypoint: checkpointdemo.Name})
	if err != nil {
		return err
	}
	c.job = reply.Job
	_, err = client.Await(ctx, c.Client, c.job.String(), client.Running)
	return err
}

// checkpoint takes one and returns its statistics.
func (c *cluster) checkpoint(ctx context.Context, request string) (rpc.CheckpointInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := c.Client.TakeSnapshot(ctx, rpc.SnapshotRequest{Job: c.job.String(), RequestID: request, Kind: weir.Checkpoint})
	if err != nil {
		return rpc.CheckpointInfo{}, err
	}
	l, err := c.Client.Checkpoints(ctx, c.job.String())
	if err != nil {
		return rpc.CheckpointInfo{}, err
	}
	for _, info := range l.Recent {
		if info.ID == reply.Checkpoint {
			return info, nil
		}
	}
	return rpc.CheckpointInfo{}, fmt.Errorf("checkpoint %d has no statistics", reply.Checkpoint)
}

// metadata is the size of a checkpoint's _metadata.
func (c *cluster) metadata(info rpc.CheckpointInfo) (int, error) {
	f, err := os.Stat(filepath.Join(info.Path, "_metadata"))
	if err != nil {
		return 0, err
	}
	return int(f.Size()), nil
}
