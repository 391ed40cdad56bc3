package jobmanager

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// plan is a compiled job with what it was compiled from.
type plan struct {
	logical *jobgraph.Logical
	options jobgraph.Options
	graph   *jobgraph.JobGraph
}

// origin reads and checks the snapshot that a job is to start from (behaviour §11). The
// plan that it returns fits it: vertices whose user set no maximum parallelism take that
// of their state, and operators with in-flight data between them are not fused.
func (t *term) origin(ctx context.Context, from source, o joboption.Recovery, p plan) (*jobmaster.Origin, *jobgraph.JobGraph, error) {
	s, err := snapshotmeta.Open(ctx, from.blobs, from.name)
	if err != nil {
		return nil, nil, originError(from.path, err)
	}
	jobmaster.DropInFlight(s, o)
	graph, err := Fitted(p.logical, p.options, p.graph, s)
	if err != nil {
		return nil, nil, fault(rpc.CodeInvalidArgument, "", "%v", err)
	}
	name := from.name
	if from.blobs != t.cfg.Blobs {
		name = snapshotmeta.Foreign(from.blobs.Location(), name)
	}
	if err := jobmaster.CheckRestore(graph, p.logical.Text(), s, o); err != nil {
		return nil, nil, fault(rpc.CodeInvalidArgument, "state is found by the names of operators; keep them when a job changes. `weir savepoint check` shows a verdict for each",
			"start from %s: %v", from.path, err)
	}
	if o.Claim && !s.Header.Kind.IsSavepoint() {
		over, err := t.isOver(ctx, s.Header.Job)
		if err != nil {
			return nil, nil, fault(rpc.CodeUnavailable, "", "start from %s: %v", from.path, err)
		}
		if !over {
			return nil, nil, fault(rpc.CodeFailedPrecondition, "cancel that job first, or leave the snapshot to it with NO_CLAIM",
				"start from %s: it cannot be claimed, since its job (%s) runs and needs it", from.path, s.Header.Job)
		}
	}
	return &jobmaster.Origin{
		Path: from.path, Metadata: name, Checkpoint: s.Header.Checkpoint, Kind: s.Header.Kind, Bytes: s.Bytes(), Claim: o.Claim,
	}, graph, nil
}

// source is where a snapshot lies that a job is to start from.
type source struct {
	path  string // for people
	why   string // this one, for people
	blobs blobstore.Store
	name  string // blob name of its _metadata
}

// wish merges what a request says about the start into the options.
func wish(r rpc.SubmitRequest, o joboption.Recovery) (joboption.Recovery, error) {
	if r.From != "" && o.Path != "" && r.From != o.Path {
		return o, fault(rpc.CodeInvalidArgument, "give one of them", "start from %q contradicts %s = %q", r.From, joboption.KeyFrom, o.Path)
	}
	if r.From != "" {
		o.Path = r.From
	}
	if o.Claim && (o.Path == "" || o.Path == joboption.FromNone) {
		return o, fault(rpc.CodeInvalidArgument, "say which with --from", "claim mode CLAIM needs a snapshot to start from")
	}
	return o, nil
}

// choose finds what a job of this name starts from; found is false for nothing.
func (t *term) choose(ctx context.Context, name string, o joboption.Recovery) (s source, found bool, err error) {
	switch o.Path {
	case "":
		s.why = "nothing was named to start from"
		return s, false, nil
	case joboption.FromNone:
		s.why = "it was to start from nothing"
		return s, false, nil
	case joboption.FromLatest:
		s, err = t.latest(ctx, name)
	default:
		s.path, s.why = o.Path, "it was to start from "+o.Path
		s.blobs, s.name, err = t.locate(o.Path)
	}
	if err != nil {
		return s, false, err
	}
	if o.Claim {
		s.why += ", and to claim it"
	}
	return s, true, nil
}

// latest finds the newest checkpoint of the last job of a name. There must be one: who
// asks for the last state does not want to begin with none (field report B87).
func (t *term) latest(ctx context.Context, name string) (source, error) {
	entries, err := t.entries(ctx) // newest first
	if err != nil {
		return source{}, err
	}
	const orElse = "give the path of a snapshot, or --from none to begin with nothing"
	at := slices.IndexFunc(entries, func(e entry) bool { return e.job.Record.Name == name })
	if at < 0 {
		return source{}, fault(rpc.CodeNotFound, orElse, "start from the latest checkpoint: no job was called %q, as far as the cluster remembers", name)
	}
	job := entries[at].job.Record
	links, err := t.jobs.Links(ctx, job.Job)
	if err != nil {
		return source{}, fault(rpc.CodeUnavailable, "", "%v", err)
	}
	if len(links) == 0 {
		return source{}, fault(rpc.CodeNotFound, orElse, "start from the latest checkpoint: job %q (%s) has none", name, job.Job)
	}
	newest := links[len(links)-1]
	s := source{
		path: pathOf(t.cfg.Blobs.Location(), newest.Metadata),
		why:  "it is the newest checkpoint of job " + job.Job.String() + ", the last one of this name",
	}
	location, blob, foreign := snapshotmeta.CutForeign(newest.Metadata)
	s.blobs, s.name = t.cfg.Blobs, blob
	if foreign && location != "" && location != t.cfg.Blobs.Location() {
		if t.cfg.OpenStore == nil {
			return source{}, fault(rpc.CodeNotFound, orElse, "start from %s: no other store can be opened", s.path)
		}
		if s.blobs, err = t.cfg.OpenStore(location); err != nil {
			return source{}, fault(rpc.CodeNotFound, orElse, "start from %s: %v", s.path, err)
		}
	}
	return s, nil
}

// Fitted is the plan of a job as it is for a start from a snapshot: see origin.
func Fitted(logical *jobgraph.Logical, options jobgraph.Options, graph *jobgraph.JobGraph, s *snapshotmeta.Snapshot) (*jobgraph.JobGraph, error) {
	graph, err := plan{logical, options, graph}.apart(jobmaster.KeepApart(graph, s))
	if err != nil {
		return nil, err
	}
	jobmaster.AdoptMaxParallelism(graph, s)
	return graph, nil
}

// claim makes the snapshot the job's own, if it is to be (DECISIONS 10). It is done
// before the job is recorded, and taken back if that fails: a claim of a job that does
// not exist is replaced by the next one.
func (t *term) claim(ctx context.Context, job weir.JobID, o *jobmaster.Origin) (drop func(ctx context.Context), err error) {
	if o == nil || !o.Claim {
		return func(context.Context) {}, nil
	}
	blobs, dir, err := t.claimPlace(o)
	if err != nil {
		return nil, err
	}
	c := store.Claim{Cluster: t.cfg.ClusterID, Job: job.String(), At: time.Now().UTC()}
	select {
	case t.claims <- struct{}{}:
		defer func() { <-t.claims }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	err = store.TakeClaim(ctx, blobs, dir, c, func(other weir.JobID) (bool, error) { return t.isOver(ctx, other) })
	var claimed *store.ClaimedError
	switch {
	case errors.As(err, &claimed):
		return nil, fault(rpc.CodeFailedPrecondition, "start from it with claim mode NO_CLAIM, or from another one; if the owner is gone for good, remove the file _claim",
			"start from %s: it is %v", o.Path, claimed)
	case err != nil:
		return nil, fault(rpc.CodeUnavailable, "to claim a snapshot its directory must be writable; NO_CLAIM only reads", "start from %s: %v", o.Path, err)
	}
	return func(ctx context.Context) {
		if err := store.DropClaim(ctx, blobs, dir, c); err != nil {
			t.log.Warn("claim of a refused job not dropped", zap.String("snapshot", o.Metadata), zap.Error(err))
		}
	}, nil
}

func (t *term) claimPlace(o *jobmaster.Origin) (blobstore.Store, string, error) {
	location, name, foreign := snapshotmeta.CutForeign(o.Metadata)
	if !foreign {
		return t.cfg.Blobs, path.Dir(name), nil
	}
	blobs, err := t.cfg.OpenStore(location)
	if err != nil {
		return nil, "", fault(rpc.CodeUnavailable, "", "start from %s: %v", o.Path, err)
	}
	return blobs, path.Dir(name), nil
}

// isOver says whether a job of this cluster has ended, or is not recorded at all.
func (t *term) isOver(ctx context.Context, job weir.JobID) (bool, error) {
	j, err := t.jobs.Job(ctx, job)
	if errors.Is(err, ha.ErrNoJob) {
		return true, nil
	}
	return err == nil && j.Status.Terminal, err
}

// apart is the plan in which these operators start a chain.
func (p plan) apart(operators []string) (*jobgraph.JobGraph, error) {
	if len(operators) == 0 {
		return p.graph, nil
	}
	logical := *p.logical
	logical.Operators = slices.Clone(logical.Operators)
	for _, name := range operators {
		logical.Operator(name).Chaining = jobgraph.ChainStart
	}
	return jobgraph.Compile(&logical, p.options)
}

// locate finds the store and the blob that a path means: one in the checkpoint store,
// or, if it is absolute and elsewhere, in a store of its own that is only read.
func (t *term) locate(from string) (blobstore.Store, string, error) {
	own := t.cfg.Blobs.Location()
	if t.cfg.OpenStore == nil || !strings.HasPrefix(from, "/") || slices.Contains(strings.Split(from, "/"), "..") ||
		strings.HasPrefix(path.Clean(from), path.Clean(own)+"/") {
		name, err := metadataName(own, from)
		return t.cfg.Blobs, name, err
	}
	clean, err := fs.CheckPath(from, t.cfg.SnapshotDirs...)
	if err != nil {
		return nil, "", fault(rpc.CodeInvalidArgument, "the JobManager's --snapshot-dir says where snapshots may lie besides its own directories", "start from a %v", err)
	}
	location, name, err := snapshotmeta.SplitLocation(clean)
	if err != nil {
		return nil, "", fault(rpc.CodeInvalidArgument, "give the path that `weir checkpoints` or `weir demo --keep` prints", "start from %q: %v", from, err)
	}
	blobs, err := t.cfg.OpenStore(location)
	if err != nil {
		return nil, "", fault(rpc.CodeNotFound, "the path must be there on the JobManager's host and on every TaskManager's", "start from %s: %v", from, err)
	}
	return blobs, name, nil
}

// metadataName finds the blob that a path means. It is absolute, under the checkpoint
// directory, or relative to it, and names the directory of a snapshot or the
// _metadata in it.
func metadataName(location, from string) (string, error) {
	bad := func(why string) error {
		return fault(rpc.CodeInvalidArgument, "give the path that `weir checkpoints` prints, such as "+path.Join(location, "JOB/chk-7"),
			"start from %q: %s", from, why)
	}
	if slices.Contains(strings.Split(from, "/"), "..") || strings.ContainsAny(from, "\x00\\") {
		return "", bad("the path goes up")
	}
	rel := from
	if strings.HasPrefix(from, "/") || strings.HasPrefix(from, location+"/") {
		rest, ok := strings.CutPrefix(path.Clean(from), path.Clean(location)+"/")
		if !ok {
			return "", fault(rpc.CodeInvalidArgument, "copy the snapshot's job directory there, or start a JobManager with --checkpoint-dir of the snapshot",
				"start from %q: the path is not in the cluster's checkpoint directory %s", from, location)
		}
		rel = rest
	}
	rel = strings.TrimSuffix(path.Clean(rel), "/"+snapshotmeta.MetadataFile)
	name := path.Join(rel, snapshotmeta.MetadataFile)
	const depth = 2 // JOB/chk-N/_metadata, or that of a savepoint, which may lie deeper
	if blobstore.CheckName(name) != nil || strings.Count(name, "/") != depth && !strings.HasPrefix(path.Base(rel), "savepoint-") {
		return "", bad("the path does not look like JOB/chk-N")
	}
	return name, nil
}

// originError says what is wrong with a snapshot, and what to do.
func originError(from string, err error) error {
	switch {
	case errors.Is(err, snapshotmeta.ErrNotFound) || errors.Is(err, blobstore.ErrNotFound):
		return fault(rpc.CodeNotFound, "`weir checkpoints JOB` lists those there are", "start from %s: there is no snapshot", from)
	case errors.Is(err, snapshotmeta.ErrNotSnapshot):
		return fault(rpc.CodeInvalidArgument, "give the directory of a checkpoint", "start from %s: this is not a snapshot: %v", from, err)
	case errors.Is(err, snapshotmeta.ErrNewerVersion):
		return fault(rpc.CodeInvalidArgument, "use the version that wrote it, or a later one", "start from %s: %v", from, err)
	case errors.Is(err, snapshotmeta.ErrCorrupt) || errors.Is(err, snapshotmeta.ErrTruncated):
		return fault(rpc.CodeInvalidArgument, "choose an earlier checkpoint", "start from %s: the snapshot is damaged: %v", from, err)
	default:
		return fault(rpc.CodeUnavailable, "", "start from %s: %v", from, err)
	}
}
