package cli

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/jobmanager/joboption"
)

// localSlots is how many slots a cluster in this process offers.
const localSlots = 128

func (a *app) runCommand() *cobra.Command {
	var j job
	var dir string
	cmd := &cobra.Command{
		Use:   "run ENTRY",
		Short: "Run a whole job in this process, without a cluster",
		Long: `Run starts a JobManager and a TaskManager within this process, runs the job and follows it
until it ends. An interrupt ends it. Nothing is kept, except checkpoints if
--checkpoint-dir names a directory. What --from names is only read.`,
		Example: `  weir run checkpoint-demo --checkpoint-interval 1s`,
		Args:    exactly(1, "the name of an entry point"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		r, err := j.request(args[0])
		if err != nil {
			return err
		}
		isPath := r.From != "" && r.From != joboption.FromNone && r.From != joboption.FromLatest
		if isPath && !filepath.IsAbs(r.From) && dir == "" { // there is no directory that it could be relative to
			if r.From, err = filepath.Abs(r.From); err != nil {
				return err
			}
		}
		ctx := cmd.Context()
		g, stop, err := a.roles.Local(ctx, LocalOptions{Slots: localSlots, CheckpointDir: dir})
		if err != nil {
			return err
		}
		defer func() {
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
			defer cancel()
			err = errors.Join(err, stop(grace))
		}()
		reply, err := g.Submit(ctx, r)
		if err != nil {
			return err
		}
		if err := a.accepted(reply); err != nil {
			return err
		}
		return a.follow(ctx, g, reply)
	}
	j.flags(cmd)
	cmd.Flags().StringVar(&dir, "checkpoint-dir", "", "directory that keeps the checkpoints (default: memory)")
	return cmd
}
