package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/snapshotmeta"
)

// verificationJSON is what verify has found.
type verificationJSON struct {
	Path      string       `json:"path"`
	OK        bool         `json:"ok"`
	Files     int          `json:"files"`
	Parts     int          `json:"parts"`
	Bytes     int64        `json:"bytes"`
	Damaged   int          `json:"damaged"`
	Damage    []damageJSON `json:"damage"`
	Truncated bool         `json:"truncated,omitempty"` // more are damaged than are listed
}

type damageJSON struct {
	Owner string `json:"owner"`
	File  string `json:"file,omitempty"`
	Fault string `json:"fault"` // missing, cut, corrupt or unreadable
	Error string `json:"error"`
}

// damageShown is how many damaged parts are listed.
const damageShown = 100

// errDamaged is the outcome of verify for a snapshot that is not whole.
var errDamaged = errors.New("the snapshot is damaged: choose an earlier one, or copy this one again")

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify PATH",
		Short: "Verify that a snapshot is whole: every file, its length and checksums",
		Long: `Verify reads all of the snapshot at PATH, on this machine and without a cluster: _metadata
against its checksum, and of every part of the state that it names, file, length and checksum.

It ends with exit code 0 if all is as it was written, else with 1.`,
		Example: `  weir checkpoint verify /data/checkpoints/4f…/chk-12`,
		Args:    exactly(1, "the path of a snapshot"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		out, err := verifySnapshot(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if a.json() {
			err = printJSON(a.streams.Out, out)
		} else {
			a.printVerification(out)
		}
		if err == nil && !out.OK {
			err = fmt.Errorf("%s: %d of %d parts: %w", out.Path, out.Damaged, out.Parts, errDamaged)
		}
		return err
	}
	return cmd
}

func verifySnapshot(ctx context.Context, path string) (verificationJSON, error) {
	out := verificationJSON{Path: path, Damage: []damageJSON{}}
	store, name, err := openSnapshotDir(path)
	if err != nil {
		return out, err
	}
	defer store.Close()
	sum, err := snapshotmeta.Verify(ctx, store, name, func(d snapshotmeta.Damage) error {
		if len(out.Damage) == damageShown {
			out.Truncated = true
			return nil
		}
		out.Damage = append(out.Damage, damageJSON{Owner: d.Owner, File: d.File, Fault: faultOf(d.Err), Error: d.Err.Error()})
		return nil
	})
	if err != nil {
		return out, snapshotError(path, err)
	}
	out.Files, out.Parts, out.Bytes, out.Damaged, out.OK = sum.Files, sum.Parts, sum.Bytes, sum.Damage, sum.Damage == 0
	return out, nil
}

func faultOf(err error) string {
	switch {
	case errors.Is(err, blobstore.ErrNotFound):
		return "missing"
	case errors.Is(err, snapshotmeta.ErrTruncated):
		return "cut"
	case errors.Is(err, snapshotmeta.ErrCorrupt):
		return "corrupt"
	default:
		return "unreadable"
	}
}

func (a *app) printVerification(v verificationJSON) {
	w := a.streams.Out
	if v.OK {
		fmt.Fprintf(w, "%s is whole: %d files, %d parts, %s\n", v.Path, v.Files, v.Parts, bytesText(v.Bytes))
		return
	}
	var t table
	t.row("FAULT", "OF", "FILE", "")
	for _, d := range v.Damage {
		file := d.File
		if file == "" {
			file = snapshotmeta.MetadataFile
		}
		t.row(d.Fault, d.Owner, file, d.Error)
	}
	t.print(w)
	if v.Truncated {
		fmt.Fprintf(w, "and %d parts more\n", v.Damaged-len(v.Damage))
	}
}
