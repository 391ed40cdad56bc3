package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/jobmanager/checkpointing/gc"
	"github.com/weirflow/weir/rpc"
)

// gcMinAge is how old a file must be by default. What protects a running cluster is the
// order of the questions; this is for what the cluster cannot know, such as somebody who
// copies a snapshot into place.
const gcMinAge = 10 * time.Minute

type gcJSON struct {
	Dir          string        `json:"dir"`
	Deleted      bool          `json:"deleted"` // false: nothing was to be deleted
	Orphans      []gcEntryJSON `json:"orphans"`
	Unknown      []gcEntryJSON `json:"unknown_jobs"`
	Kept         []gcEntryJSON `json:"kept"`
	Trouble      []gcEntryJSON `json:"trouble"`
	InUse        int           `json:"snapshots_in_use"`
	OrphanFiles  int           `json:"orphan_files"`
	OrphanBytes  int64         `json:"orphan_bytes"`
	DeletedFiles int           `json:"deleted_files"`
	DeletedBytes int64         `json:"deleted_bytes"`
}

type gcEntryJSON struct {
	Dir   string   `json:"dir"`
	Files int      `json:"files"`
	Bytes int64    `json:"bytes"`
	Why   string   `json:"why"`
	Names []string `json:"names,omitempty"` // of orphans
}

func (a *app) gcCommand() *cobra.Command {
	var dir string
	var remove bool
	var age time.Duration
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "List what no job needs of the checkpoint directory, and delete it",
		Long: `Gc finds files in the cluster's checkpoint directory that no job needs: checkpoints that were
never complete, or whose deletion a crash or the store has prevented, and files that no checkpoint
names. It only lists them; --delete deletes them.

It is safe beside a running cluster: it lists the directory first, then asks the leading JobManager
what is in use, and asks again before it deletes. Without an answer it deletes nothing. What is
younger than --min-age is left, and so are jobs that the cluster has no record of (another
cluster's, or forgotten ones whose checkpoints were kept: remove their directories by hand),
snapshots that somebody has claimed, and savepoints that are whole.

The directory must be readable here; --checkpoint-dir says where, if not where the JobManager has it.`,
		Example: `  weir checkpoint gc
  weir checkpoint gc --delete --checkpoint-dir /mnt/checkpoints`,
		Args: exactly(0, "no arguments"),
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, _ []string) error {
		if age < 0 {
			return usageError{errors.New("--min-age must not be negative")}
		}
		out, err := collect(ctx, c, dir, age, remove)
		if out != nil {
			if a.json() {
				err = errors.Join(printJSON(a.streams.Out, out), err)
			} else {
				a.printGC(out, remove)
			}
		}
		if err == nil && len(out.Trouble) > 0 {
			err = fmt.Errorf("%d directories could not be judged: nothing of them was touched", len(out.Trouble))
		}
		return err
	})
	f := cmd.Flags()
	f.StringVar(&dir, "checkpoint-dir", "", "the cluster's checkpoint directory as seen from here (default: as the JobManager sees it)")
	f.BoolVar(&remove, "delete", false, "delete what is listed")
	f.DurationVar(&age, "min-age", gcMinAge, "leave what is younger")
	return cmd
}

// inUser says what of a checkpoint directory is in use.
type inUser interface {
	InUse(ctx context.Context) (rpc.InUse, error)
}

// collect lists, asks, and deletes if it is to. The report is nil if there is none.
func collect(ctx context.Context, c inUser, dir string, age time.Duration, remove bool) (*gcJSON, error) {
	if dir == "" { // asked once more below: what counts is an answer after the listing
		use, err := inUse(ctx, c)
		if err != nil {
			return nil, err
		}
		dir = use.CheckpointDir
	}
	blobs, err := fs.OpenExisting(dir)
	if err != nil {
		return nil, &rpc.Error{
			Code: rpc.CodeNotFound, Message: fmt.Sprintf("the checkpoint directory %s cannot be opened here: %v", dir, err),
			Hint: "run gc where it is mounted, and say where with --checkpoint-dir",
		}
	}
	defer blobs.Close()
	found, err := gc.List(ctx, blobs)
	if err != nil {
		return nil, err
	}
	use, err := inUse(ctx, c)
	if err != nil {
		return nil, err
	}
	report, err := gc.Sort(ctx, blobs, found, use, gc.Options{Now: time.Now(), MinAge: age})
	if err != nil {
		return nil, err
	}
	var done gc.Deleted
	if remove && len(report.Orphans) > 0 {
		if use, err = inUse(ctx, c); err != nil {
			return nil, err
		}
		report.Spare(use)
		done, err = report.Delete(ctx, blobs)
	}
	out := gcJSONOf(blobs.Location(), report)
	out.Deleted, out.DeletedFiles, out.DeletedBytes = remove, done.Files, done.Bytes
	return out, err
}

// inUse asks the cluster; without an answer nothing may be deleted.
func inUse(ctx context.Context, c inUser) (rpc.InUse, error) {
	use, err := c.InUse(ctx)
	if err != nil {
		return rpc.InUse{}, fmt.Errorf("nothing is deleted without knowing what is in use: %w", err)
	}
	return use, nil
}

func gcJSONOf(dir string, r *gc.Report) *gcJSON {
	kept := func(list []gc.Kept) []gcEntryJSON {
		out := []gcEntryJSON{}
		for _, k := range list {
			out = append(out, gcEntryJSON{Dir: k.Dir, Files: k.Files, Bytes: k.Bytes, Why: k.Why})
		}
		return out
	}
	out := &gcJSON{Dir: dir, Orphans: []gcEntryJSON{}, Unknown: kept(r.Unknown), Kept: kept(r.Kept), Trouble: kept(r.Trouble), InUse: r.InUse}
	for _, o := range r.Orphans {
		e := gcEntryJSON{Dir: o.Dir, Files: len(o.Files), Bytes: o.Bytes(), Why: o.Why}
		for _, f := range o.Files {
			e.Names = append(e.Names, f.Name)
		}
		out.Orphans = append(out.Orphans, e)
		out.OrphanFiles += e.Files
		out.OrphanBytes += e.Bytes
	}
	return out
}

func (a *app) printGC(g *gcJSON, remove bool) {
	w := a.streams.Out
	var t table
	rows := func(what string, list []gcEntryJSON) {
		for _, e := range list {
			t.row(what, e.Dir, right(fmt.Sprint(e.Files)), right(bytesText(e.Bytes)), e.Why)
		}
	}
	rows("orphan", g.Orphans)
	rows("kept", g.Kept)
	rows("unknown", g.Unknown)
	rows("TROUBLE", g.Trouble)
	if len(t.rows) > 0 {
		t.rows = append([][]string{{"", "DIRECTORY", right("FILES"), right("SIZE"), ""}}, t.rows...)
		t.print(w)
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s: %d snapshots in use, %d orphaned files of %s", g.Dir, g.InUse, g.OrphanFiles, bytesText(g.OrphanBytes))
	switch {
	case remove:
		fmt.Fprintf(w, "; deleted %d files, %s\n", g.DeletedFiles, bytesText(g.DeletedBytes))
	case g.OrphanFiles > 0:
		fmt.Fprintln(w, "; --delete deletes them")
	default:
		fmt.Fprintln(w)
	}
}
