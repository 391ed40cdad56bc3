package minicluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/rpc"
)

// TB is the part of testing.TB that is needed here, so that binaries that carry a
// cluster do not carry package testing.
type TB interface {
	Helper()
	Context() context.Context
	Cleanup(fn func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// JobOptions say how a job is run.
type JobOptions struct {
	Params      map[string]string
	Parallelism int               // 0: 1
	Set         map[string]string // job options: keys of docs/config.md
	From        string            // path of a checkpoint to start from
	Cluster     Options           // where it runs; Jobs is filled in
	Timeout     time.Duration     // of the whole run, default 30 s
}

// StopTimeout bounds how long a test's cluster takes to stop.
const StopTimeout = 30 * time.Second

// ForTest starts a cluster that ends with the test.
func ForTest(t TB, o Options) *Cluster {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), StopTimeout)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Errorf("stop minicluster: %v", err)
		}
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// Run runs a bounded job to its end on a cluster of its own. The test fails if the
// job does.
func Run(t TB, job flow.Job, o JobOptions) rpc.JobDetail {
	t.Helper()
	def(&o.Timeout, 30*time.Second)
	o.Cluster.Jobs = []flow.Job{job}
	c := ForTest(t, o.Cluster)
	ctx, cancel := context.WithTimeoutCause(t.Context(), o.Timeout, fmt.Errorf("job %q did not end within %s", job.Name(), o.Timeout))
	defer cancel()
	reply, err := c.Gateway().Submit(ctx, rpc.SubmitRequest{
		Entrypoint: job.Name(), Params: o.Params, Options: o.Set, Parallelism: o.Parallelism, From: o.From,
	})
	if err != nil {
		t.Fatalf("submit job %q: %v", job.Name(), err)
	}
	detail, err := c.Await(ctx, reply.Job, func(d rpc.JobDetail) bool { return d.Status.Final() })
	if err != nil {
		t.Fatalf("job %q is %s (%s): %v", job.Name(), detail.Status, detail.Detail, err)
	}
	if detail.Status != rpc.JobFinished {
		t.Fatalf("job %q is %s: %s%s", job.Name(), detail.Status, detail.Detail, failureText(detail.Failure))
	}
	return detail
}

func failureText(f *weir.Failure) string {
	if f == nil {
		return ""
	}
	return ": " + f.Error()
}

// look is how often Await looks.
const look = 10 * time.Millisecond

// Await returns when the job is as done says, or has ended in another way, which is
// an error, or with ctx's cause.
func (c *Cluster) Await(ctx context.Context, job weir.JobID, done func(rpc.JobDetail) bool) (rpc.JobDetail, error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		d, err := c.jm.Get(ctx, job.String())
		switch {
		case err != nil:
			return d, err
		case done(d):
			return d, nil
		case d.Status.Final():
			return d, errors.New("the job has ended")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return d, context.Cause(ctx)
		}
	}
}

// AwaitCheckpoint returns when a checkpoint after the given one (0: any) is
// complete, with the newest.
func (c *Cluster) AwaitCheckpoint(ctx context.Context, job weir.JobID, after weir.CheckpointID) (rpc.CheckpointInfo, error) {
	if _, err := c.Await(ctx, job, func(d rpc.JobDetail) bool { return d.LastCheckpoint > after }); err != nil {
		return rpc.CheckpointInfo{}, err
	}
	list, err := c.jm.Checkpoints(ctx, job.String())
	if err != nil {
		return rpc.CheckpointInfo{}, err
	}
	for _, info := range list.Recent {
		if info.Status == rpc.CheckpointCompleted && info.ID > after {
			return info, nil
		}
	}
	return rpc.CheckpointInfo{}, fmt.Errorf("checkpoint after %d of job %s is complete and not listed", after, job)
}
