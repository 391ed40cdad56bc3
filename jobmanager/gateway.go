package jobmanager

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/rpc"
)

// Submit starts a job, or finds the one with this request id.
func (j *JobManager) Submit(ctx context.Context, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return rpc.SubmitReply{}, err
	}
	return t.submit(ctx, r)
}

// List lists the jobs, newest first.
func (j *JobManager) List(ctx context.Context) ([]rpc.JobSummary, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := t.entries(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]rpc.JobSummary, 0, len(entries))
	for _, e := range entries {
		r, err := t.report(ctx, e)
		if err != nil {
			return nil, err
		}
		list = append(list, summary(r))
	}
	return list, nil
}

// Get shows one job.
func (j *JobManager) Get(ctx context.Context, job string) (rpc.JobDetail, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return rpc.JobDetail{}, err
	}
	r, err := t.find(ctx, job)
	if err != nil {
		return rpc.JobDetail{}, err
	}
	if r.Body == nil {
		// Of a job that ended before this leader. A body that is gone leaves gaps.
		if body, err := jobmaster.ReadSubmission(ctx, t.cfg.Blobs, r.Job.Body); err == nil {
			r.Body = body
		}
	}
	return detail(r, t.cfg.Blobs.Location()), nil
}

// Cancel ends a job. Cancelling one that is cancelling or canceled is no error.
func (j *JobManager) Cancel(ctx context.Context, job string) error {
	t, err := j.leading(ctx)
	if err != nil {
		return err
	}
	e, err := t.lookUp(ctx, job)
	if err != nil {
		return err
	}
	if e.live() {
		e.master.Cancel()
		return nil
	}
	r, err := t.report(ctx, e)
	if err != nil {
		return err
	}
	if r.Status != rpc.JobCanceled {
		return fault(rpc.CodeFailedPrecondition, "", "job %q has ended already, it is %s", e.job.Record.Name, r.Status)
	}
	return nil
}

// Checkpoints lists a job's recent checkpoints.
func (j *JobManager) Checkpoints(ctx context.Context, job string) (rpc.CheckpointList, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return rpc.CheckpointList{}, err
	}
	r, err := t.find(ctx, job)
	if err != nil {
		return rpc.CheckpointList{}, err
	}
	links, err := t.jobs.Links(ctx, r.Job.Job)
	if err != nil {
		return rpc.CheckpointList{}, fault(rpc.CodeUnavailable, "", "%v", err)
	}
	return checkpoints(r, links, t.cfg.Blobs.Location()), nil
}

// Plan shows what a submission would run, and starts nothing.
func (j *JobManager) Plan(ctx context.Context, r rpc.SubmitRequest) (rpc.PlanReply, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return rpc.PlanReply{}, err
	}
	if err := checkRequest(r); err != nil {
		return rpc.PlanReply{}, err
	}
	p, err := t.prepare(ctx, r)
	if err != nil {
		return rpc.PlanReply{}, err
	}
	return rpc.PlanReply{Graph: *p.body.Graph, Text: p.body.GraphText, Slots: p.slots, Warnings: p.warnings}, nil
}

// Cluster describes the cluster.
func (j *JobManager) Cluster(ctx context.Context) (rpc.ClusterInfo, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return rpc.ClusterInfo{}, err
	}
	info := rpc.ClusterInfo{
		ClusterID: t.cfg.ClusterID, Epoch: t.leadership.Epoch(), CodeID: t.cfg.CodeID, CheckpointDir: t.cfg.Blobs.Location(),
	}
	for _, e := range t.cfg.Catalog.Entrypoints() {
		info.Entrypoints = append(info.Entrypoints, e.Name)
	}
	info.TaskManagers, err = asked(ctx, t, func(d *dispatcher) []rpc.TaskManagerInfo {
		var list []rpc.TaskManagerInfo
		for id, p := range d.byID {
			list = append(list, rpc.TaskManagerInfo{
				Registration: p.who, FreeSlots: d.table.Free(id), LastHeartbeat: time.Since(d.monitor.Last(id)),
			})
		}
		return list
	})
	slices.SortFunc(info.TaskManagers, func(a, b rpc.TaskManagerInfo) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return info, err
}

// asked runs fn on the dispatcher's loop and returns what it returns.
func asked[T any](ctx context.Context, t *term, fn func(d *dispatcher) T) (answer T, err error) {
	reply := make(chan T, 1)
	if !t.dispatcher.inbox.Post(ask{func(d *dispatcher) { reply <- fn(d) }}) {
		return answer, errTermOver()
	}
	select {
	case answer = <-reply:
		return answer, nil
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	case <-t.group.Context().Done():
		return answer, errTermOver()
	}
}

// entries returns copies of all entries, newest first.
func (t *term) entries(ctx context.Context) ([]entry, error) {
	list, err := asked(ctx, t, func(d *dispatcher) []entry {
		var list []entry
		for _, e := range d.jobs {
			list = append(list, *e)
		}
		return list
	})
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(b.job.Record.Submitted.Compare(a.job.Record.Submitted), bytes.Compare(b.job.Record.Job[:], a.job.Record.Job[:]))
	})
	return list, err
}

// byRequest finds the job that a request id made.
func (t *term) byRequest(ctx context.Context, request string) (ha.JobRecord, bool) {
	entries, _ := t.entries(ctx)
	for _, e := range entries {
		if e.job.Record.RequestID == request {
			return e.job.Record, true
		}
	}
	return ha.JobRecord{}, false
}

// lookUp finds a job by its id or by its name: the live one so called, else the newest.
func (t *term) lookUp(ctx context.Context, job string) (entry, error) {
	entries, err := t.entries(ctx)
	if err != nil {
		return entry{}, err
	}
	id, idErr := weir.ParseJobID(job)
	var found *entry
	for i := range entries {
		e := &entries[i]
		if idErr == nil && e.job.Record.Job == id {
			return *e, nil
		}
		if e.job.Record.Name == job && (found == nil || e.live() && !found.live()) {
			found = e
		}
	}
	if found == nil {
		return entry{}, fault(rpc.CodeNotFound, "`weir list` lists the jobs", "there is no job %q", job)
	}
	return *found, nil
}

func (t *term) find(ctx context.Context, job string) (jobmaster.Report, error) {
	e, err := t.lookUp(ctx, job)
	if err != nil {
		return jobmaster.Report{}, err
	}
	return t.report(ctx, e)
}

// report is what is known of a job: from its loop while it has one, from its last
// report if it ended in this term, else from the records.
func (t *term) report(ctx context.Context, e entry) (jobmaster.Report, error) {
	if e.live() {
		r, err := e.master.View(ctx)
		if err == nil {
			return r, nil
		}
		if ctx.Err() != nil {
			return jobmaster.Report{}, context.Cause(ctx)
		}
		// Its loop has just ended; the dispatcher knows by now, or will.
		final, err := asked(ctx, t, func(d *dispatcher) *jobmaster.Report {
			if now := d.jobs[e.job.Record.Job]; now != nil {
				return now.final
			}
			return nil
		})
		if err != nil {
			return jobmaster.Report{}, err
		}
		e.final = final
	}
	if e.final != nil {
		return *e.final, nil
	}
	return recorded(e.job), nil
}
