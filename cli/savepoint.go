package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// wish is what the flags of savepoint, stop and checkpoint trigger have in common.
type wish struct {
	target    string
	requestID string
	timeout   time.Duration
}

func (w *wish) flags(cmd *cobra.Command, savepoint bool) {
	f := cmd.Flags()
	if savepoint {
		f.StringVar(&w.target, "dir", "", "directory for the savepoint's own, below the JobManager's --savepoint-dir (default: that, or the job's option)")
	}
	f.StringVar(&w.requestID, "request-id", "", "makes the call safe to repeat (default: a random one)")
	f.DurationVar(&w.timeout, "timeout", 0, "how long to wait for the answer; what was asked for goes on (default: as long as it takes)")
}

// begin completes the wish and bounds the call.
func (w *wish) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if w.timeout < 0 {
		return nil, nil, usageError{errors.New("--timeout must not be negative")}
	}
	if w.requestID == "" {
		w.requestID = rand.Text()
	}
	if w.timeout == 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	late := &rpc.Error{
		Code: rpc.CodeDeadlineExceeded, Message: fmt.Sprintf("no answer within %s", w.timeout),
		Hint: fmt.Sprintf("it may still be under way; ask again with --request-id %s", w.requestID),
	}
	ctx, cancel := context.WithTimeoutCause(ctx, w.timeout, late)
	return ctx, cancel, nil
}

func (a *app) savepointCommand() *cobra.Command {
	var w wish
	format := "canonical"
	cmd := &cobra.Command{
		Use:   "savepoint JOB",
		Short: "Take a savepoint of a running job",
		Long: `Savepoint takes a snapshot of a running job that is yours: it lies in a directory of its
own, refers to nothing outside of it, and is never deleted by the cluster. The job goes on. The path
is printed; ` + "`weir submit ENTRY --from PATH`" + ` starts a job from it.

canonical is the format that every state backend reads, native the backend's own.`,
		Example: `  weir savepoint orders
  weir savepoint orders --dir before-upgrade --format native`,
		Args: exactly(1, "the id or name of a job"),
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		kind, ok := map[string]weir.SnapshotKind{"canonical": weir.Savepoint, "native": weir.NativeSavepoint}[format]
		if !ok {
			return usageError{fmt.Errorf("--format is %q, want canonical or native", format)}
		}
		return a.takeSnapshot(ctx, c, &w, args[0], kind)
	})
	w.flags(cmd, true)
	cmd.Flags().StringVar(&format, "format", format, "canonical or native")
	cmd.AddCommand(a.savepointCheckCommand())
	return cmd
}

func (a *app) checkpointTriggerCommand() *cobra.Command {
	var w wish
	var full bool
	cmd := &cobra.Command{
		Use:   "trigger JOB",
		Short: "Take a checkpoint of a running job now",
		Long: `Trigger takes a checkpoint as the job's options say, whatever its interval, and prints its
path. It is one of the job's checkpoints, and is deleted when newer ones are complete.

--full takes one that shares no file with an earlier one.`,
		Example: `  weir checkpoint trigger orders --full`,
		Args:    exactly(1, "the id or name of a job"),
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		kind := weir.Checkpoint
		if full {
			kind = weir.FullCheckpoint
		}
		return a.takeSnapshot(ctx, c, &w, args[0], kind)
	})
	w.flags(cmd, false)
	cmd.Flags().BoolVar(&full, "full", false, "share no file with an earlier checkpoint")
	return cmd
}

func (a *app) takeSnapshot(ctx context.Context, c *client.Client, w *wish, job string, kind weir.SnapshotKind) error {
	ctx, cancel, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	r, err := c.TakeSnapshot(ctx, rpc.SnapshotRequest{Job: job, RequestID: w.requestID, Kind: kind, Target: w.target})
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.streams.Out, map[string]any{
			"checkpoint": int64(r.Checkpoint), "path": r.Path, "bytes": r.Bytes, "duration_ms": r.Duration.Milliseconds(), "request_id": w.requestID,
		})
	}
	_, err = fmt.Fprintln(a.streams.Out, r.Path)
	return err
}

func (a *app) stopCommand() *cobra.Command {
	var w wish
	var drain bool
	cmd := &cobra.Command{
		Use:   "stop JOB",
		Short: "Stop a job with a savepoint",
		Long: `Stop takes a savepoint at which the sources stop, waits until everything that belongs to
it is committed, and ends the job. The path of the savepoint is printed; a job that is submitted
with --from PATH goes on where this one stopped, exactly once. See docs/savepoints.md.

--drain ends the data of the sources first: windows fire and operators emit their last
records. It is for a job that will not go on from the savepoint.

If there is no savepoint the job goes on, or restarts from its last checkpoint. If there is one
but the job could not be stopped, the path is printed all the same and the exit code is 1: the
job goes on from it. --request-id makes the call safe to repeat: a second one with the same id
gets the first one's answer.`,
		Example: `  weir stop orders
  weir stop orders --drain --request-id nightly-2026-11-30`,
		Args: exactly(1, "the id or name of a job"),
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		ctx, cancel, err := w.begin(ctx)
		if err != nil {
			return err
		}
		defer cancel()
		r, err := c.StopJob(ctx, rpc.StopRequest{Job: args[0], RequestID: w.requestID, Drain: drain, Target: w.target})
		if err != nil {
			return err
		}
		return a.stopAnswer(args[0], w.requestID, r)
	})
	w.flags(cmd, true)
	cmd.Flags().BoolVar(&drain, "drain", false, "end the data of the sources first")
	return cmd
}

// stopAnswer prints where the savepoint is; a job that goes on is a failure.
func (a *app) stopAnswer(job, requestID string, r rpc.StopReply) error {
	var err error
	if a.json() {
		err = printJSON(a.streams.Out, map[string]any{
			"checkpoint": int64(r.Checkpoint), "path": r.Path, "status": r.Status.String(), "failure": r.Failure, "request_id": requestID,
		})
	} else {
		_, err = fmt.Fprintln(a.streams.Out, r.Path)
	}
	if r.Failure == "" {
		return err
	}
	return errors.Join(err, &rpc.Error{
		Code: rpc.CodeFailedPrecondition, Message: fmt.Sprintf("the savepoint is complete, but job %s is %s: %s", job, r.Status, r.Failure),
		Hint: "the job goes on from the savepoint; keep it, and stop the job again",
	})
}
