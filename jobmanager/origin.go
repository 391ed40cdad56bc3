package jobmanager

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// plan is a compiled job with what it was compiled from.
type plan struct {
	logical *jobgraph.Logical
	options jobgraph.Options
	graph   *jobgraph.JobGraph
}

// origin reads and checks the snapshot that a job is to start from (behaviour §11,
// NO_CLAIM): it is not ours and never deleted. The plan that it returns fits it:
// vertices whose user set no maximum parallelism take that of their state, and
// operators with in-flight data between them are not fused.
func (t *term) origin(ctx context.Context, from string, p plan) (*jobmaster.Origin, *jobgraph.JobGraph, error) {
	blobs, name, err := t.locate(from)
	if err != nil {
		return nil, nil, err
	}
	s, err := snapshotmeta.Open(ctx, blobs, name)
	if err != nil {
		return nil, nil, originError(from, err)
	}
	graph, err := p.apart(jobmaster.KeepApart(p.graph, s))
	if err != nil {
		return nil, nil, fault(rpc.CodeInvalidArgument, "", "%v", err)
	}
	if blobs != t.cfg.Blobs {
		name = snapshotmeta.Foreign(blobs.Location(), name)
	}
	jobmaster.AdoptMaxParallelism(graph, s)
	if err := jobmaster.CheckRestore(graph, p.logical.Text(), s); err != nil {
		return nil, nil, fault(rpc.CodeInvalidArgument, "state is found by the names of operators; keep them when a job changes",
			"start from %s: %v", from, err)
	}
	return &jobmaster.Origin{
		Path: from, Metadata: name, Checkpoint: s.Header.Checkpoint, Kind: s.Header.Kind, Bytes: s.Bytes(),
	}, graph, nil
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
	location, name, err := snapshotmeta.SplitLocation(path.Clean(from))
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
