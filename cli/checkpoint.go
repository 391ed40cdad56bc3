package cli

import "github.com/spf13/cobra"

// checkpointCommand is the group of commands about single checkpoints and what lies
// in storage.
func (a *app) checkpointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "Look into checkpoints, verify them, remove what nobody needs",
		Long: `Commands about what lies in durable storage. ` + "`weir checkpoints JOB`" + ` lists a job's checkpoints
with their paths.`,
		Example: `  weir checkpoint trigger orders
  weir checkpoint interval orders 30s
  weir checkpoint explain orders
  weir checkpoint inspect /data/checkpoints/4f…/chk-12
  weir checkpoint verify /data/checkpoints/4f…/chk-12
  weir checkpoint gc`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.checkpointTriggerCommand(), a.intervalCommand(), a.explainCommand(), a.inspectCommand(), a.verifyCommand(), a.gcCommand())
	return cmd
}
