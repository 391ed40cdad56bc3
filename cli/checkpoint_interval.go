package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

func (a *app) intervalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "interval JOB [INTERVAL]",
		Short: "Show or change how often a running job takes checkpoints",
		Long: `Interval prints the time between a job's checkpoints, and sets it first if one is given. The
new one holds until the job ends, also after a restart and for another JobManager. It counts from now if it
is the shorter one, else from the checkpoint that is due next. off: no periodic checkpoints.`,
		Example: `  weir checkpoint interval orders
  weir checkpoint interval orders 30s`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usageError{fmt.Errorf("%d arguments, want the id or name of a job, and an interval or none", len(args))}
			}
			return nil
		},
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		r := rpc.IntervalRequest{Job: args[0], Set: len(args) == 2}
		if r.Set && args[1] != "off" {
			var err error
			if r.Interval, err = time.ParseDuration(args[1]); err != nil || r.Interval <= 0 {
				return usageError{fmt.Errorf("interval %q: want a duration such as 30s, or off", args[1])}
			}
		}
		reply, err := c.CheckpointInterval(ctx, r)
		if err != nil {
			return err
		}
		if a.json() {
			return printJSON(a.streams.Out, map[string]any{"interval_ms": reply.Interval.Milliseconds()})
		}
		text := reply.Interval.String()
		if reply.Interval == 0 {
			text = "off"
		}
		_, err = fmt.Fprintln(a.streams.Out, text)
		return err
	})
	return cmd
}
