package sim

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing/gc"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// ofCollectors says whether garbage is collected beside the jobs in lives of this seed. In
// calm lives it is not: there, jobs must leave nothing behind.
func ofCollectors(seed uint64) bool { return seed%3 != 0 }

// collectEvery is the time between two collections. Files of any age are orphans: what
// keeps them apart from what is under way is the order of the questions alone.
const collectEvery = 900 * time.Millisecond

// collector is somebody who runs `weir checkpoint gc --delete --min-age 0` again and again,
// on the checkpoint directory itself, where no fault strikes. The oracle sees whether a
// file of a link goes, and so does whoever restores.
func (w *World) collector() {
	err := w.group.Go("collector", func(ctx context.Context) error {
		for !w.over.Load() {
			if err := pause(ctx, collectEvery); err != nil {
				return err
			}
			if _, err := w.collect(ctx); err != nil {
				w.say("gc: " + err.Error())
			}
		}
		return nil
	})
	if err != nil {
		w.fail("%v", err)
	}
}

// collect deletes the orphans that there are. An error says that nobody could tell.
func (w *World) collect(ctx context.Context) (*gc.Report, error) {
	found, err := gc.List(ctx, w.disk)
	if err != nil {
		return nil, err
	}
	var use [2]rpc.InUse
	for i := range use {
		call, done := context.WithTimeoutCause(ctx, 5*time.Second, errNetwork)
		err := w.client(call, func(g rpc.ClientGateway) (err error) {
			use[i], err = g.InUse(call)
			return err
		})
		done()
		if err != nil {
			return nil, err
		}
	}
	report, err := gc.Sort(ctx, w.disk, found, use[0], gc.Options{})
	if err != nil {
		return nil, err
	}
	report.Spare(use[1])
	done, err := report.Delete(ctx, w.disk)
	if done.Files > 0 {
		w.note("gc", "%d files deleted: %s", done.Files, report.Orphans[0].Dir)
		w.oracle.deleted("")
		w.collected.Store(true)
	}
	return report, err
}

// collectAll collects at the end of a job's life, until somebody could tell, and then
// demands that of the job nothing is left but what a link names, and its body.
func (w *World) collectAll() {
	w.t.Helper()
	var report *gc.Report
	done := make(chan struct{})
	err := w.group.Go("last-collector", func(ctx context.Context) error {
		defer close(done)
		for {
			r, err := w.collect(ctx)
			if err == nil && len(r.Trouble) == 0 {
				report = r
				return nil
			}
			if err := pause(ctx, collectEvery); err != nil {
				return err
			}
		}
	})
	if err != nil {
		w.fail("%v", err)
	}
	w.rushUntil("garbage is collected", healBound, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	w.oracle.look()
	if w.collected.Load() {
		w.marks.add(MarkCollected)
	}
	if left := w.oracle.leftOver(report); len(left) > 0 {
		w.fail("after gc these files are left, which no link names: %s", strings.Join(left, ", "))
	}
}

// leftOver are the files in the job's directory that neither a link nor its record names,
// and that gc did not say it keeps.
func (o *Oracle) leftOver(report *gc.Report) []string {
	used := make(map[string]bool)
	for _, c := range o.checked {
		for _, name := range c.files {
			used[name] = true
		}
	}
	o.mu.Lock()
	job := o.mu.job
	o.mu.Unlock()
	if j, err := o.source.Job(context.Background(), job); err == nil {
		used[j.Record.Body] = true
	}
	var left []string
	for _, name := range o.w.blobs() {
		if strings.HasPrefix(name, snapshotmeta.JobDir(job)+"/") && !used[name] && !keptBy(report, name) {
			left = append(left, name)
		}
	}
	return left
}

// claims notes what the next job will claim.
func (o *Oracle) claims(id weir.CheckpointID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.claimed = id
}

// claimed is the checkpoint of another job that the present one has claimed, or 0.
func (o *Oracle) claimed() weir.CheckpointID {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.claimed
}

// replaced says whether the job has claimed what it started from, and has removed its link
// since.
func (o *Oracle) replaced() bool {
	claimed := o.claimed()
	if claimed == 0 {
		return false
	}
	for _, c := range o.checked {
		if c.link.Checkpoint == claimed {
			return false
		}
	}
	return true
}

// keptBy says whether gc has left the file, and said so: it is of a checkpoint that is
// under way, or that another job starts from.
func keptBy(report *gc.Report, name string) bool {
	return slices.ContainsFunc(report.Kept, func(k gc.Kept) bool { return path.Dir(name) == k.Dir })
}
