package sim

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// customer is a client with one job. It submits the job until that is known to have
// happened, looks after it, and cancels it in the end.
type customer struct {
	w        *World
	request  rpc.SubmitRequest
	cancel   atomic.Bool
	canceled atomic.Bool
	finished atomic.Bool
	ends     bool                               // the job does so by itself
	newest   atomic.Pointer[rpc.CheckpointInfo] // that is complete, as shown
	stopper  *stopper                           // or nil
}

// submit starts a customer, whose job resumes from a checkpoint of another, or from none:
// 0. From now on the oracle watches that job.
func (w *World) submit(r rpc.SubmitRequest, from weir.CheckpointID, ends bool) *customer {
	r.Parallelism = 1
	w.oracle.begin(r.RequestID, from)
	c := &customer{w: w, request: r, ends: ends}
	if from == 0 {
		c.stopper = newStopper(w.Plan.Stop)
	}
	if err := w.group.Go("customer", c.run); err != nil {
		w.fail("%v", err)
	}
	return c
}

func (c *customer) run(ctx context.Context) error {
	job := ""
	for !c.canceled.Load() && !c.finished.Load() {
		call, done := context.WithTimeoutCause(ctx, 5*time.Second, errNetwork)
		err := c.w.client(call, func(g rpc.ClientGateway) (err error) {
			if job == "" {
				job, err = c.submit(call, g)
				return err
			}
			return c.look(call, g, job)
		})
		done()
		if err != nil {
			c.w.say(err.Error())
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (c *customer) submit(ctx context.Context, g rpc.ClientGateway) (string, error) {
	reply, err := g.Submit(ctx, c.request)
	if code := rpc.CodeOf(err); err != nil && (code == rpc.CodeInvalidArgument || code == rpc.CodeAlreadyExists || code == rpc.CodeFailedPrecondition) {
		c.w.wrong("submit: %v", err)
	}
	if err != nil {
		return "", err
	}
	return reply.Job.String(), nil
}

// look looks at the job; in the end it cancels it.
func (c *customer) look(ctx context.Context, g rpc.ClientGateway, job string) error {
	d, err := g.Get(ctx, job)
	if err != nil {
		return err
	}
	c.w.say(fmt.Sprintf("%s: %s", d.Status, d.Detail))
	if s := c.stopper; s != nil && s.begin.Load() {
		if d.Stopping == s.request() {
			s.seen = d.Stopping
		}
		if d.Status.Final() && c.endedByItself(d) {
			return nil
		}
		over := s.seen == s.request() && d.Status == rpc.JobRunning && d.Stopping == ""
		err := c.stop(ctx, g, job, over)
		if s.agreed.Load() {
			c.finished.Store(true)
		}
		return err
	}
	if d.Status == rpc.JobFinished && c.ends {
		c.finished.Store(true)
		return nil
	}
	if d.Status.Final() && (d.Status != rpc.JobCanceled || !c.cancel.Load()) {
		c.w.wrong("the job is %s: %s (%v)", d.Status, d.Detail, d.Failure)
	}
	list, err := g.Checkpoints(ctx, job)
	if err != nil {
		return err
	}
	c.w.oracle.shown(list)
	for _, info := range list.Recent {
		if info.Status == rpc.CheckpointCompleted && (!info.Kind.IsSavepoint() || info.Kind.IsSynchronous()) {
			c.newest.Store(&info)
			break
		}
	}
	if c.stopper != nil && d.Status == rpc.JobRunning {
		c.savepoint(ctx, g, job)
	}
	switch {
	case d.Status == rpc.JobCanceled:
		c.canceled.Store(true)
	case c.cancel.Load():
		return g.Cancel(ctx, job)
	}
	return nil
}

var errStopped = errors.New("life has ended")

// pause waits, or returns an error when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errStopped
	}
}
