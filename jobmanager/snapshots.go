package jobmanager

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// answerWithin bounds how long a call waits for a snapshot or a stop: shorter than any
// client's patience for one call. Who hears that it is under way asks again.
const answerWithin = 8 * time.Second

// errUnderWay is the cause with which such a call ends.
var errUnderWay = errors.New("under way")

// underWay tells a client to ask again with the same request id.
func underWay(what string) error {
	return fault(rpc.CodeDeadlineExceeded, "ask again with the same request id", "%s is under way", what)
}

// TakeSnapshot takes a checkpoint or a savepoint of a running job.
func (j *JobManager) TakeSnapshot(ctx context.Context, r rpc.SnapshotRequest) (rpc.SnapshotReply, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return rpc.SnapshotReply{}, err
	}
	if r.Kind.IsSynchronous() {
		return rpc.SnapshotReply{}, fault(rpc.CodeInvalidArgument, "use stop", "a %s is part of a stop", r.Kind)
	}
	if r.RequestID, err = requestID(r.RequestID); err != nil {
		return rpc.SnapshotReply{}, err
	}
	e, err := t.lookUp(ctx, r.Job)
	if err != nil {
		return rpc.SnapshotReply{}, err
	}
	if !e.live() {
		return rpc.SnapshotReply{}, t.hasEnded(ctx, e)
	}
	begun := time.Now()
	wish := jobmaster.SnapshotRequested{Request: r.RequestID, Kind: r.Kind}
	if r.Kind.IsSavepoint() {
		if wish.Directory, err = t.savepointDirectory(ctx, e, r.Target); err != nil {
			return rpc.SnapshotReply{}, err
		}
		if done, ok := t.savepointOf(ctx, e.job.Record.Job, wish); ok {
			return done, nil
		}
	}
	bounded, cancel := context.WithTimeoutCause(ctx, answerWithin, errUnderWay)
	defer cancel()
	answer, err := e.master.TakeSnapshot(bounded, wish)
	switch {
	case errors.Is(err, jobmaster.ErrNoLoop):
		return rpc.SnapshotReply{}, t.hasEnded(ctx, e)
	case errors.Is(err, errUnderWay):
		return rpc.SnapshotReply{}, underWay("the " + r.Kind.String())
	case err != nil:
		return rpc.SnapshotReply{}, err
	case answer.Reason != weir.ReasonNone:
		return rpc.SnapshotReply{}, snapshotError(r.Kind, e.job.Record.Name, answer)
	}
	return rpc.SnapshotReply{
		Checkpoint: answer.Checkpoint, Path: pathOf(t.cfg.Blobs.Location(), answer.Metadata), Bytes: answer.Bytes, Duration: time.Since(begun),
	}, nil
}

// snapshotError says why there is no snapshot, and what to do.
func snapshotError(kind weir.SnapshotKind, job string, a jobmaster.SnapshotEnded) error {
	code, hint := rpc.CodeFailedPrecondition, "the job goes on; `weir checkpoints` says more"
	switch a.Reason {
	case weir.NotAllRequiredTasksRunning:
		hint = "try again when all tasks run; `weir show` says what the job does"
	case weir.IOException:
		hint = "is the directory there and writable, and is there space? the job goes on"
	case weir.TooManyCheckpointRequests:
		code, hint = rpc.CodeResourceExhausted, "wait until those are done"
	}
	why := a.Reason.String()
	if a.Message != "" {
		why += ": " + a.Message
	}
	return fault(code, hint, "no %s of job %q: %s", kind, job, why)
}

// StopJob ends a job with a savepoint.
func (j *JobManager) StopJob(ctx context.Context, r rpc.StopRequest) (rpc.StopReply, error) {
	t, err := j.leading(ctx)
	if err != nil {
		return rpc.StopReply{}, err
	}
	if r.RequestID, err = requestID(r.RequestID); err != nil {
		return rpc.StopReply{}, err
	}
	e, err := t.lookUp(ctx, r.Job)
	if err != nil {
		return rpc.StopReply{}, err
	}
	if !e.live() {
		return t.stopped(ctx, e, r.RequestID)
	}
	if reply, before, err := t.stoppedBefore(ctx, e, r.RequestID); before || err != nil {
		return reply, err
	}
	wish := jobmaster.Stop{Request: r.RequestID, Kind: weir.SuspendSavepoint}
	if r.Drain {
		wish.Kind = weir.TerminateSavepoint
	}
	if wish.Directory, err = t.savepointDirectory(ctx, e, r.Target); err != nil {
		return rpc.StopReply{}, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, answerWithin, errUnderWay)
	defer cancel()
	answer, err := e.master.StopWithSavepoint(bounded, wish)
	switch {
	case errors.Is(err, jobmaster.ErrNoLoop):
		return t.stopped(ctx, e, r.RequestID)
	case errors.Is(err, errUnderWay):
		return rpc.StopReply{}, underWay("the stop of job " + e.job.Record.Name)
	case err != nil:
		return rpc.StopReply{}, err
	}
	return t.stopReply(ctx, e, answer)
}

// stopReply says how a stop went, with the job's real status (B20).
func (t *term) stopReply(ctx context.Context, e entry, a jobmaster.StopEnded) (rpc.StopReply, error) {
	switch {
	case a.Refused:
		return rpc.StopReply{}, fault(rpc.CodeFailedPrecondition, "`weir show` says what the job does", "job %q is not stopped: %s", e.job.Record.Name, a.Failure)
	case a.Metadata == "":
		return rpc.StopReply{}, fault(rpc.CodeFailedPrecondition, "`weir show` says what the job does; stop it again with a new request id",
			"job %q is not stopped: %s", e.job.Record.Name, a.Failure)
	}
	reply := rpc.StopReply{
		Checkpoint: a.Checkpoint, Path: pathOf(t.cfg.Blobs.Location(), a.Metadata), Status: rpc.JobFinished, Failure: a.Failure,
	}
	if a.Failure == "" {
		return reply, nil
	}
	r, err := t.report(ctx, e)
	reply.Status = r.Status
	return reply, err
}

// stopped answers a request to stop a job that has ended: as it was answered then, if it
// ended with that request.
func (t *term) stopped(ctx context.Context, e entry, request string) (rpc.StopReply, error) {
	r, err := t.report(ctx, e)
	if err != nil {
		return rpc.StopReply{}, err
	}
	if a, ok := r.StopOf(request); ok {
		return t.stopReply(ctx, e, a)
	}
	record, asked, err := t.jobs.Stop(ctx, e.job.Record.Job)
	if err != nil {
		return rpc.StopReply{}, fault(rpc.CodeUnavailable, "ask again with the same request id", "%v", err)
	}
	if asked {
		if a, ok := jobmaster.FailedStop(&record, request); ok {
			return t.stopReply(ctx, e, a)
		}
	}
	return rpc.StopReply{}, t.hasEnded(ctx, e)
}

// stoppedBefore finds the answer of a request that has stopped an earlier job of the same
// name: it is not meant for the one that goes on from its savepoint (field report B18).
func (t *term) stoppedBefore(ctx context.Context, live entry, request string) (reply rpc.StopReply, before bool, err error) {
	entries, err := t.entries(ctx)
	if err != nil {
		return reply, false, err
	}
	for _, e := range entries {
		if e.live() || e.job.Record.Name != live.job.Record.Name {
			continue
		}
		r, err := t.report(ctx, e)
		if err != nil {
			return reply, false, err
		}
		if a, ok := r.StopOf(request); ok {
			reply, err = t.stopReply(ctx, e, a)
			return reply, true, err
		}
	}
	return reply, false, nil
}

// hasEnded says that nothing can be asked of a job any more.
func (t *term) hasEnded(ctx context.Context, e entry) error {
	r, err := t.report(ctx, e)
	if err != nil {
		return err
	}
	hint := ""
	if r.Stopped != nil && r.Stopped.Metadata != "" {
		hint = "its savepoint is " + pathOf(t.cfg.Blobs.Location(), r.Stopped.Metadata)
	}
	return fault(rpc.CodeFailedPrecondition, hint, "job %q has ended, it is %s", e.job.Record.Name, r.Status)
}

// requestID bounds a request id that comes from outside; one is drawn if there is none.
func requestID(id string) (string, error) {
	switch {
	case id == "":
		return "auto-" + randomHex(), nil
	case len(id) > ha.MaxNameLength:
		return "", fault(rpc.CodeInvalidArgument, "", "the request id is longer than %d bytes", ha.MaxNameLength)
	case strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c == '\uFFFD' }):
		return "", fault(rpc.CodeInvalidArgument, "", "the request id has characters that cannot be printed")
	}
	return id, nil
}

// savepointOf finds the savepoint that a request made under an earlier leader, or too long
// ago to be remembered.
func (t *term) savepointOf(ctx context.Context, job weir.JobID, wish jobmaster.SnapshotRequested) (reply rpc.SnapshotReply, found bool) {
	root, dir, _ := snapshotmeta.CutForeign(wish.Directory)
	blobs := t.cfg.Blobs
	if root != "" {
		var err error
		if blobs, err = t.cfg.OpenStore(root); err != nil {
			return reply, false // the job's loop says so
		}
	}
	name := ""
	_ = blobs.List(ctx, path.Join(dir, jobmaster.SavepointPrefix(job, wish.Request))+"-", func(i blobstore.Info) error {
		if path.Base(i.Name) == snapshotmeta.MetadataFile {
			name = i.Name
		}
		return nil
	})
	if name == "" {
		return reply, false
	}
	s, err := snapshotmeta.Open(ctx, blobs, name)
	if err != nil || s.Header.Kind != wish.Kind || s.Header.Job != job {
		return reply, false
	}
	return rpc.SnapshotReply{
		Checkpoint: s.Header.Checkpoint, Path: path.Join(blobs.Location(), path.Dir(name)), Bytes: s.Bytes(),
		Duration: s.Header.Completed.Sub(s.Header.Triggered),
	}, true
}

// defaultSavepoints is the directory of savepoints in the checkpoint store.
const defaultSavepoints = "savepoints"

// savepointRoot is the directory below which all savepoints go: its store, empty for the
// checkpoint store; its name there; and its path for people.
func (c *Config) savepointRoot() (location, dir, shown string) {
	own := c.Blobs.Location()
	if c.SavepointDir == "" {
		return "", defaultSavepoints, path.Join(own, defaultSavepoints)
	}
	shown = path.Clean(c.SavepointDir)
	if rest, ok := strings.CutPrefix(shown, path.Clean(own)+"/"); ok {
		return "", rest, shown
	}
	return shown, ".", shown
}

// savepointDirectory is where a savepoint's own directory is made: the target of the
// request, else that of the job's options, else the cluster's. A target is a directory
// below the cluster's, absolute or relative to it (field report B105).
func (t *term) savepointDirectory(ctx context.Context, e entry, target string) (string, error) {
	if target == "" {
		r, err := t.report(ctx, e)
		if err != nil {
			return "", err
		}
		if r.Spec != nil {
			target = r.Spec.Settings.Checkpointing.SavepointDir
		}
	}
	directory, err := t.cfg.savepointTarget(target)
	if err != nil {
		return "", fault(rpc.CodeInvalidArgument, "savepoints go below the JobManager's --savepoint-dir", "savepoint directory: %v", err)
	}
	return directory, nil
}

// savepointTarget checks a target and makes it absolute.
func (c *Config) savepointTarget(target string) (string, error) {
	location, dir, shown := c.savepointRoot()
	absolute := target
	if !strings.HasPrefix(target, "/") {
		if target != "" {
			if err := blobstore.CheckName(target); err != nil {
				return "", err
			}
		}
		absolute = path.Join(shown, target)
	}
	if strings.HasPrefix(shown, "/") {
		clean, err := fs.CheckPath(absolute, shown)
		if err != nil {
			return "", err
		}
		absolute = clean
	} else if strings.HasPrefix(target, "/") {
		return "", blobstore.ErrBadName
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(absolute, shown), "/")
	return snapshotmeta.Foreign(location, path.Join(dir, rest)), nil
}
