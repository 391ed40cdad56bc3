package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// SavepointsDir is where savepoints lie in a checkpoint store, unless they go elsewhere.
const SavepointsDir = "savepoints"

// Found is what a checkpoint directory holds, as it was listed.
type Found struct {
	jobs  map[weir.JobID][]blobstore.Info // by name
	saved map[string][]blobstore.Info     // directories of savepoints
	Other int                             // blobs that are not of any job
}

// List lists a checkpoint directory.
func List(ctx context.Context, blobs blobstore.Store) (*Found, error) {
	f := &Found{jobs: make(map[weir.JobID][]blobstore.Info), saved: make(map[string][]blobstore.Info)}
	err := blobs.List(ctx, "", func(i blobstore.Info) error {
		top, rest, _ := strings.Cut(i.Name, "/")
		switch id, err := weir.ParseJobID(top); {
		case err == nil && snapshotmeta.JobDir(id) == top:
			f.jobs[id] = append(f.jobs[id], i)
		case top == SavepointsDir && strings.Contains(rest, "/"):
			dir := path.Dir(i.Name)
			f.saved[dir] = append(f.saved[dir], i)
		default:
			f.Other++
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", blobs.Location(), err)
	}
	return f, nil
}

// has says whether a blob was listed. One that a job needs in another store and that has a
// namesake here is spared here too: the two may be one directory under two paths.
func (f *Found) has(name string) bool {
	is := func(i blobstore.Info) bool { return i.Name == name }
	top, _, _ := strings.Cut(name, "/")
	id, err := weir.ParseJobID(top)
	return err == nil && slices.ContainsFunc(f.jobs[id], is) || slices.ContainsFunc(f.saved[path.Dir(name)], is)
}

// Options say what may be an orphan.
type Options struct {
	// Now is the time, and MinAge how old a file must be: what was written since may be
	// part of something that nobody has heard of yet. A store that keeps no times has
	// old files only if MinAge is 0.
	Now    time.Time
	MinAge time.Duration
}

// Orphan is one directory, or the shared directory of a job, with files that nobody needs.
type Orphan struct {
	Job   weir.JobID // zero: a savepoint's
	Dir   string     // blob names begin with it
	Files []blobstore.Info
	Why   string
}

// Bytes is the size of all files.
func (o *Orphan) Bytes() (n int64) {
	for _, f := range o.Files {
		n += f.Size
	}
	return n
}

// Kept is a directory of which nothing was looked at, or was left for a reason.
type Kept struct {
	Dir   string
	Files int
	Bytes int64
	Why   string
}

// Report is what [Sort] has found.
type Report struct {
	Orphans []Orphan // by directory
	Unknown []Kept   // directories of jobs that are not recorded
	Kept    []Kept   // what might be orphans, and was left
	// Trouble are directories of which it cannot be told what is needed. They are in no
	// other list.
	Trouble []Kept
	Young   int // files of orphans that are too young
	InUse   int // snapshots that are needed
}

// Sort says what of the listed is needed by nobody. use must have been asked for after
// the listing.
func Sort(ctx context.Context, blobs blobstore.Store, f *Found, use rpc.InUse, o Options) (*Report, error) {
	s := &sorter{blobs: blobs, options: o, report: new(Report), known: make(map[weir.JobID]*rpc.JobInUse), here: make(map[string]bool)}
	for i := range use.Jobs {
		j := &use.Jobs[i]
		s.known[j.Job] = j
		s.saving = s.saving || j.Saving || j.Unknown != ""
		for _, m := range j.Metadata {
			if name, local := s.local(m); local || f.has(name) {
				s.here[path.Dir(name)] = true
			}
		}
	}
	s.report.InUse = len(s.here)
	order := func(a, b weir.JobID) int { return strings.Compare(a.String(), b.String()) }
	for _, id := range slices.SortedFunc(maps.Keys(f.jobs), order) {
		if err := s.job(ctx, id, f.jobs[id]); err != nil {
			return nil, err
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(f.saved)) {
		s.savepoint(ctx, dir, f.saved[dir])
	}
	return s.report, ctx.Err()
}

// sorter is one call of Sort.
type sorter struct {
	blobs   blobstore.Store
	options Options
	report  *Report
	known   map[weir.JobID]*rpc.JobInUse
	here    map[string]bool // directories of snapshots in use, in this store
	saving  bool            // somewhere a savepoint may be under way
}

// local is the name here of a blob that may lie in another store.
func (s *sorter) local(blob string) (string, bool) {
	location, name, foreign := snapshotmeta.CutForeign(blob)
	return name, !foreign || location == "" || location == s.blobs.Location()
}

// job sorts one job's directory.
func (s *sorter) job(ctx context.Context, id weir.JobID, files []blobstore.Info) error {
	dir := snapshotmeta.JobDir(id)
	j := s.known[id]
	switch {
	case j == nil:
		s.report.Unknown = append(s.report.Unknown, kept(dir, files, "the cluster has no record of this job"))
		return nil
	case j.Unknown != "":
		s.report.Trouble = append(s.report.Trouble, kept(dir, files, j.Unknown))
		return nil
	}
	needed, err := s.needed(ctx, id)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.report.Trouble = append(s.report.Trouble, kept(dir, files, err.Error()))
		return nil
	}
	byDir := make(map[string][]blobstore.Info)
	for _, f := range files {
		if !needed[f.Name] {
			byDir[s.part(dir, f.Name)] = append(byDir[s.part(dir, f.Name)], f)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(byDir)) {
		s.directory(ctx, j, part, byDir[part])
	}
	return nil
}

// part is the directory within a job's that a file belongs to, or the job's own.
func (s *sorter) part(job, name string) string {
	sub, _, deep := strings.Cut(strings.TrimPrefix(name, job+"/"), "/")
	if !deep {
		return job
	}
	return path.Join(job, sub)
}

// needed are the blobs of a job's directory that a snapshot in use names, whoever's job
// uses it. Every one must be readable.
func (s *sorter) needed(ctx context.Context, id weir.JobID) (map[string]bool, error) {
	names := make(map[string]bool)
	dir := snapshotmeta.JobDir(id)
	for _, at := range slices.Sorted(maps.Keys(s.here)) {
		if path.Dir(at) != dir {
			continue
		}
		names[path.Join(at, snapshotmeta.MetadataFile)], names[path.Join(at, store.ClaimFile)] = true, true
		add := func(h weir.StateHandle) error {
			if h.File != "" {
				names[path.Join(dir, h.File)] = true
			}
			return nil
		}
		_, err := snapshotmeta.Walk(ctx, s.blobs, at, snapshotmeta.Visitor{
			Subtask: func(_ *snapshotmeta.Operator, sub *snapshotmeta.Subtask) error {
				snapshotmeta.TaskHandles(weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{sub.State}}, func(h weir.StateHandle) { _ = add(h) })
				return nil
			},
			Coordinator: func(op *snapshotmeta.Operator) error { return add(op.Coordinator) },
			Channel:     func(c *weir.ChannelStateHandle) error { return add(c.Handle) },
		})
		if errors.Is(err, snapshotmeta.ErrNotFound) {
			return nil, fmt.Errorf("%s, which is in use, is not here: is this the cluster's checkpoint directory?", at)
		}
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// directory sorts what is not needed in one directory of a job.
func (s *sorter) directory(ctx context.Context, j *rpc.JobInUse, dir string, files []blobstore.Info) {
	name := path.Base(dir)
	switch id, isCheckpoint := checkpointID(name); {
	case isCheckpoint && slices.Contains(j.Pending, id):
		s.keep(dir, files, "the checkpoint is under way")
	case isCheckpoint:
		s.snapshot(ctx, j, dir, files)
	case dir == snapshotmeta.JobDir(j.Job):
		// The submission, and what somebody has put there.
	case name != snapshotmeta.SharedDir:
		s.keep(dir, files, "it is no directory of ours")
	case !j.Status.Final():
		s.keep(dir, files, "the job lives, and knows itself which shared files it needs")
	default:
		s.orphan(j.Job, dir, files, "no checkpoint of the job names them")
	}
}

// checkpointID is the id in the name of a checkpoint's directory.
func checkpointID(name string) (weir.CheckpointID, bool) {
	digits, ok := strings.CutPrefix(name, "chk-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	id := weir.CheckpointID(n)
	return id, err == nil && snapshotmeta.Dir(id) == name
}

// snapshot sorts a checkpoint's directory that is not under way, or what is left over in
// one that is in use.
func (s *sorter) snapshot(ctx context.Context, j *rpc.JobInUse, dir string, files []blobstore.Info) {
	why := "no link of the job names the checkpoint"
	if s.here[dir] {
		why = "the checkpoint does not name them"
	} else if claim, claimed, err := store.ReadClaim(ctx, s.blobs, dir); claimed || err != nil {
		reason := fmt.Sprintf("claimed by job %s of cluster %q", claim.Job, claim.Cluster)
		if err != nil {
			reason = err.Error()
		}
		s.keep(dir, files, reason)
		return
	}
	s.orphan(j.Job, dir, files, why)
}

// savepoint sorts the directory of a savepoint: only one that was never complete, or
// whose deletion was cut short, is an orphan.
func (s *sorter) savepoint(ctx context.Context, dir string, files []blobstore.Info) {
	_, err := s.blobs.Stat(ctx, path.Join(dir, snapshotmeta.MetadataFile))
	switch {
	case err == nil || s.here[dir]: // the user's
	case !errors.Is(err, blobstore.ErrNotFound):
		s.report.Trouble = append(s.report.Trouble, kept(dir, files, err.Error()))
	case s.saving:
		s.keep(dir, files, "a savepoint is under way, or may be")
	default:
		s.orphan(weir.JobID{}, dir, files, "a savepoint that was never complete")
	}
}

func (s *sorter) keep(dir string, files []blobstore.Info, why string) {
	s.report.Kept = append(s.report.Kept, kept(dir, files, why))
}

func kept(dir string, files []blobstore.Info, why string) Kept {
	k := Kept{Dir: dir, Files: len(files), Why: why}
	for _, f := range files {
		k.Bytes += f.Size
	}
	return k
}

// orphan takes files as orphans, if all of them are old enough: one that is young says
// that somebody is still at work in the directory.
func (s *sorter) orphan(job weir.JobID, dir string, files []blobstore.Info, why string) {
	for _, f := range files {
		if s.options.MinAge > 0 && (f.Modified.IsZero() || s.options.Now.Sub(f.Modified) < s.options.MinAge) {
			s.report.Young += len(files)
			s.keep(dir, files, "younger than "+s.options.MinAge.String())
			return
		}
	}
	s.report.Orphans = append(s.report.Orphans, Orphan{Job: job, Dir: dir, Files: files, Why: why})
}
