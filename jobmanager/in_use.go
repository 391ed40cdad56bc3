package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/rpc"
)

// viewPatience is how long a job's loop may take to say what is under way.
const viewPatience = 5 * time.Second

// InUse says what of the checkpoint directory jobs need. The order makes it true:
//
//  1. Each loop says which of its checkpoints are under way.
//  2. The chains are read. What was under way and is complete now is a link.
//  3. The registry confirms that we led all the while: a leader that was paused knows
//     nothing of what its successor has completed.
//
// So what a client listed before it asked, and what is not in the answer, is needed by
// nobody, and never will be: ids and names are not used twice (field report B14).
func (j *JobManager) InUse(ctx context.Context) (rpc.InUse, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return rpc.InUse{}, err
	}
	out := rpc.InUse{ClusterID: t.cfg.ClusterID, Epoch: t.leadership.Epoch(), CheckpointDir: t.cfg.Blobs.Location()}
	entries, err := t.entries(ctx)
	if err != nil {
		return rpc.InUse{}, err
	}
	under := make(map[string]rpc.JobInUse)
	for i := range entries {
		if e := &entries[i]; e.live() {
			under[e.job.Record.Job.String()] = t.underWay(ctx, e)
		}
	}
	jobs, err := t.jobs.Jobs(ctx)
	if err != nil { // some cannot be read: nobody knows what is theirs
		return rpc.InUse{}, fault(rpc.CodeUnavailable, "nothing may be deleted until all records of jobs can be read", "%v", err)
	}
	for _, job := range jobs {
		out.Jobs = append(out.Jobs, t.inUse(ctx, job, under[job.Record.Job.String()]))
	}
	if err := t.jobs.Confirm(ctx); err != nil {
		if errors.Is(err, ha.ErrNotLeader) {
			t.overtaken(err)
			return rpc.InUse{}, errTermOver()
		}
		return rpc.InUse{}, fault(rpc.CodeUnavailable, "ask again", "%v", err)
	}
	return out, nil
}

// underWay asks a job's loop for its pending checkpoints.
func (t *term) underWay(ctx context.Context, e *entry) (u rpc.JobInUse) {
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	r, err := e.master.View(ctx)
	if err != nil {
		u.Unknown = fmt.Sprintf("the job does not say what is under way: %v", err)
		return u
	}
	for i := range r.Checkpoints.Recent {
		if s := &r.Checkpoints.Recent[i]; s.Status == checkpointing.InProgress {
			u.Pending = append(u.Pending, s.ID)
			u.Saving = u.Saving || s.Kind.IsSavepoint()
		}
	}
	if r.Stopping != "" {
		u.Saving = true
	}
	return u
}

// inUse adds what is recorded of a job to what is under way.
func (t *term) inUse(ctx context.Context, job ha.Job, u rpc.JobInUse) rpc.JobInUse {
	u.Job, u.Name, u.Status = job.Record.Job, job.Record.Name, recorded(job).Status
	links, err := t.jobs.Links(ctx, u.Job)
	if err != nil {
		u.Unknown = fmt.Sprintf("its chain cannot be read: %v", err)
		return u
	}
	body, err := jobmaster.ReadSubmission(ctx, t.cfg.Blobs, job.Record.Body)
	switch {
	case err != nil && !job.Status.Terminal:
		u.Unknown = fmt.Sprintf("its submission cannot be read: %v", err)
	case err == nil && job.Status.Terminal && discards(body, job.Status.State):
		return u // its checkpoints are being deleted, or were left by a crash
	case err == nil && !job.Status.Terminal && len(links) == 0 && body.From != nil:
		u.Metadata = append(u.Metadata, body.From.Metadata)
	}
	for _, l := range links {
		u.Metadata = append(u.Metadata, l.Metadata)
	}
	return u
}

// discards says whether a job's checkpoints are deleted because of how it ended.
func discards(body *jobmaster.Submission, state string) bool {
	settings, err := joboption.Parse(body.Options)
	if err != nil {
		return false
	}
	return settings.Checkpointing.Retention.Deletes(jobmaster.OutcomeOf(statusNamed(state)))
}

// statusNamed is the job status with this name.
func statusNamed(name string) rpc.JobStatus {
	for s := rpc.JobInitializing; s <= rpc.JobFailed; s++ {
		if s.String() == name {
			return s
		}
	}
	return rpc.JobInitializing
}
