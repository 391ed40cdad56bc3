package jobmanager

import (
	"context"
	"errors"

	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/rpc"
)

// CheckpointInterval says how often a job takes checkpoints, and sets that first if it is
// asked to. It is recorded before the job hears of it, so that any leader knows it.
func (j *JobManager) CheckpointInterval(ctx context.Context, r rpc.IntervalRequest) (rpc.IntervalReply, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return rpc.IntervalReply{}, err
	}
	e, err := t.lookUp(ctx, r.Job)
	if err != nil {
		return rpc.IntervalReply{}, err
	}
	if !e.live() {
		return rpc.IntervalReply{}, t.hasEnded(ctx, e)
	}
	report, err := t.report(ctx, e)
	if err != nil {
		return rpc.IntervalReply{}, err
	}
	if report.Spec == nil {
		return rpc.IntervalReply{}, fault(rpc.CodeUnavailable, "try again when it is loaded", "job %q is being loaded", e.job.Record.Name)
	}
	if !r.Set {
		return rpc.IntervalReply{Interval: report.Interval}, nil
	}
	if err := report.Spec.CheckInterval(r.Interval); err != nil {
		return rpc.IntervalReply{}, fault(rpc.CodeInvalidArgument, "give an interval of at least 10ms, or `off`; the job goes on as before",
			"checkpoint interval of job %q: %v", e.job.Record.Name, err)
	}
	switch err := t.jobs.SetCheckpointInterval(ctx, e.job.Record.Job, r.Interval); {
	case errors.Is(err, ha.ErrTerminal):
		return rpc.IntervalReply{}, t.hasEnded(ctx, e)
	case err != nil:
		return rpc.IntervalReply{}, err
	}
	e.master.SetInterval(r.Interval)
	return rpc.IntervalReply{Interval: r.Interval}, nil
}
