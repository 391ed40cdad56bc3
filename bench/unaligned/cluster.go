package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weirflow/weir/bench/processes"
	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// limit is how long a job may take to start or to end.
const limit = 60 * time.Second

// managers is how many TaskManagers there are: one for each of a job's two counters.
const managers = processes.TaskManagers

// cluster is a cluster whose tasks write traces into a directory.
type cluster struct {
	*processes.Cluster
	traces string
	store  *fs.Store // of checkpoints
}

// startCluster starts the processes, with so many slots for each TaskManager.
func startCluster(slots int) (*cluster, error) {
	traces, err := os.MkdirTemp("", "weir-unaligned-")
	if err != nil {
		return nil, err
	}
	c := &cluster{traces: traces}
	if c.Cluster, err = processes.Start(slots, traceDir+"="+traces); err != nil {
		return nil, errors.Join(err, os.RemoveAll(traces))
	}
	if c.store, err = fs.OpenExisting(c.Checkpoints()); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// stop ends the processes and removes what they wrote.
func (c *cluster) stop() error { return errors.Join(c.Stop(), os.RemoveAll(c.traces)) }

// submit starts a row's job and waits until it runs.
func (c *cluster) submit(ctx context.Context, r *row) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := c.Client.Submit(ctx, rpc.SubmitRequest{Entrypoint: jobName, Name: r.name, Params: r.params(), Options: r.options()})
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	r.job = reply.Job
	if _, err := client.Await(ctx, c.Client, r.job.String(), client.Running); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}

// cancel ends a row's job.
func (c *cluster) cancel(ctx context.Context, r *row) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := c.Client.Cancel(ctx, r.job.String()); err != nil {
		return err
	}
	_, err := client.Await(ctx, c.Client, r.job.String(), client.Ended)
	return err
}
