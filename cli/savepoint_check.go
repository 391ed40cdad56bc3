package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// checkJSON is the verdict on a start from a snapshot.
type checkJSON struct {
	Path       string        `json:"path"`
	Entrypoint string        `json:"entrypoint"`
	OK         bool          `json:"ok"`
	Checkpoint int64         `json:"checkpoint"`
	Kind       string        `json:"kind"`
	Job        string        `json:"job"`
	ClaimedBy  string        `json:"claimed_by,omitempty"`
	Verdicts   []verdictJSON `json:"verdicts"`
}

type verdictJSON struct {
	Operator string `json:"operator"`
	Part     string `json:"part"`
	Verdict  string `json:"verdict"` // taken, dealt, new, unread, dropped or refused
	Text     string `json:"text"`
}

// errDoesNotFit is the outcome of check for a job that cannot start from the snapshot.
var errDoesNotFit = errors.New("the job cannot start from the snapshot")

// buildPatience bounds the builder of a job, which only describes it.
const buildPatience = 20 * time.Second

func (a *app) savepointCheckCommand() *cobra.Command {
	var j job
	cmd := &cobra.Command{
		Use:   "check PATH ENTRY",
		Short: "Say whether a job can start from a snapshot, before anything is stopped",
		Long: `Check compares the snapshot at PATH, a savepoint or a checkpoint, with the job ENTRY as this
binary builds it: run it with the new version of a job while the old one still runs. Neither a
cluster nor the running job is touched; the snapshot's files must be readable here.

For each operator and state it prints a verdict:
  taken    the job takes it over             dealt    so too, with another parallelism
  new      not in the snapshot: begins empty unread   the job does not declare it any more
  dropped  left out, as the flags allow      refused  the job cannot start, and why

It ends with exit code 0 if the job can start, else with 1.`,
		Example: `  weir savepoint check /data/savepoints/savepoint-4f12ab-x7 orders --param rate=1000
  weir savepoint check /data/checkpoints/4f…/chk-12 orders --parallelism 8 -o json`,
		Args: exactly(2, "the path of a snapshot and the name of an entry point"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		out, err := a.check(cmd.Context(), args[0], args[1], &j)
		if err != nil {
			return err
		}
		if a.json() {
			err = printJSON(a.streams.Out, out)
		} else {
			a.printCheck(out)
		}
		if err == nil && !out.OK {
			err = errDoesNotFit
		}
		return err
	}
	f := cmd.Flags()
	f.Var(&j.params, "param", "a parameter of the job; may be repeated")
	f.Var(&j.options, "set", "a job option (docs/config.md); may be repeated")
	f.IntVar(&j.parallelism, "parallelism", 0, "parallelism of operators that name none (default 1)")
	f.BoolVar(&j.allowDropped, "allow-non-restored-state", false, "start though the snapshot has state of operators that the job does not have")
	return cmd
}

// check compares a snapshot with a job.
func (a *app) check(ctx context.Context, from, entrypoint string, j *job) (*checkJSON, error) {
	r, err := j.request(entrypoint)
	if err != nil {
		return nil, err
	}
	if r.Parallelism > 0 {
		r.Options["parallelism.default"] = fmt.Sprint(r.Parallelism)
	}
	settings, err := joboption.Parse(r.Options)
	if err != nil {
		return nil, usageError{err}
	}
	blobs, name, err := openSnapshotDir(from)
	if err != nil {
		return nil, err
	}
	defer blobs.Close()
	s, err := snapshotmeta.Open(ctx, blobs, name)
	if err != nil {
		return nil, snapshotError(from, err)
	}
	program, err := a.build(ctx, r)
	if err != nil {
		return nil, err
	}
	logical := program.Logical()
	options := jobgraph.Options{
		Name: entrypoint, Parallelism: settings.Parallelism, MaxParallelism: settings.MaxParallelism, DisableChaining: !settings.Chaining,
	}
	graph, err := jobgraph.Compile(logical, options)
	if err == nil {
		graph, err = jobmanager.Fitted(logical, options, graph, s)
	}
	if err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalidArgument, Message: err.Error()}
	}
	out := checkJSONOf(from, entrypoint, s, jobmaster.Fits(graph, logical.Text(), s, settings.Recovery))
	claim, claimed, err := store.ReadClaim(ctx, blobs, path.Dir(name))
	switch {
	case err != nil:
		out.ClaimedBy = err.Error()
	case claimed:
		out.ClaimedBy = fmt.Sprintf("job %s of cluster %q", claim.Job, claim.Cluster)
	}
	return out, nil
}

// build describes the job, as a cluster of this binary would.
func (a *app) build(ctx context.Context, r rpc.SubmitRequest) (program operator.Program, err error) {
	ctx, cancel := context.WithTimeout(ctx, buildPatience)
	defer cancel()
	err = group.Catch(func() (err error) {
		program, err = a.roles.Catalog.Build(ctx, r.Entrypoint, r.Params)
		return err
	})
	if err != nil {
		return nil, &rpc.Error{
			Code: rpc.CodeInvalidArgument, Message: fmt.Sprintf("build of job %q: %v", r.Entrypoint, err),
			Hint: "the jobs are those of this binary",
		}
	}
	return program, nil
}

func checkJSONOf(from, entrypoint string, s *snapshotmeta.Snapshot, fits []jobmaster.Fit) *checkJSON {
	out := &checkJSON{
		Path: from, Entrypoint: entrypoint, OK: true, Checkpoint: int64(s.Header.Checkpoint), Kind: s.Header.Kind.String(),
		Job: s.Header.Job.String(), Verdicts: []verdictJSON{},
	}
	for _, f := range fits {
		out.OK = out.OK && f.Verdict != jobmaster.FitRefused
		out.Verdicts = append(out.Verdicts, verdictJSON{Operator: f.Operator, Part: f.Part, Verdict: f.Verdict.String(), Text: f.Text})
	}
	return out
}

func (a *app) printCheck(c *checkJSON) {
	w := a.streams.Out
	fmt.Fprintf(w, "%s %d of job %s, for the job %s\n\n", c.Kind, c.Checkpoint, c.Job, c.Entrypoint)
	var t table
	t.row("OPERATOR", "PART", "VERDICT", "")
	refused := 0
	for _, v := range c.Verdicts {
		if v.Verdict == jobmaster.FitRefused.String() {
			refused++
			v.Verdict = "REFUSED"
		}
		t.row(v.Operator, v.Part, v.Verdict, v.Text)
	}
	t.print(w)
	if c.ClaimedBy != "" {
		fmt.Fprintf(w, "\nclaimed: %s. It may delete the snapshot at any time.\n", c.ClaimedBy)
	}
	if c.OK {
		fmt.Fprintln(w, "\nthe job can start from it")
		return
	}
	fmt.Fprintf(w, "\nthe job cannot start from it: %d refused\n", refused)
}
