package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// Exit codes.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
)

// DefaultJobManager is the address that clients and TaskManagers use if none is given.
const DefaultJobManager = "127.0.0.1:6123"

// Roles is what the commands need of the process they are part of.
type Roles struct {
	// Catalog holds the jobs of this binary.
	Catalog operator.Catalog
	// CodeID is the content id of this binary.
	CodeID string
	// Executable is the path of this binary, for commands that start daemons.
	Executable string
	// JobManager runs one until ctx ends; ready is called once it serves.
	JobManager func(ctx context.Context, o JobManagerOptions, ready func(Ready)) error
	// TaskManager runs one until ctx ends; ready is called once it serves.
	TaskManager func(ctx context.Context, o TaskManagerOptions, ready func(Ready)) error
	// Local runs a whole cluster in this process until the returned function is called.
	Local func(ctx context.Context, o LocalOptions) (rpc.ClientGateway, func(context.Context) error, error)
}

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal says whether Err is a terminal, Width how wide it is.
	Terminal bool
	Width    int
}

// app is one run of the command line.
type app struct {
	roles   Roles
	streams Streams
	// flags common to all client commands
	jobManager string
	output     string
}

// usageError marks an error of the call, as opposed to one of its execution.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// Main runs the command that args name (without the program's name) and returns the
// exit code.
func Main(ctx context.Context, roles Roles, streams Streams, args []string) int {
	a := &app{roles: roles, streams: streams}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	a.report(err)
	var u usageError
	if errors.As(err, &u) || rpc.CodeOf(err) == rpc.CodeInvalidArgument {
		return ExitUsage
	}
	return ExitFailure
}

// report prints an error and what to do about it.
func (a *app) report(err error) {
	var e *rpc.Error
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.streams.Err, "weir: interrupted")
	case errors.As(err, &e) && e.Hint != "":
		message := strings.Replace(err.Error(), e.Error(), e.Message, 1)
		fmt.Fprintf(a.streams.Err, "weir: %s\nhint: %s\n", message, e.Hint)
	default:
		fmt.Fprintf(a.streams.Err, "weir: %v\n", err)
	}
	var u usageError
	if errors.As(err, &u) {
		fmt.Fprintln(a.streams.Err, "hint: weir --help, or --help after a command, says what there is")
	}
}

const rootHelp = `Weir runs stateful stream jobs: exactly once, on as many machines as you like.

A first look, on this machine alone:
  weir demo                              a cluster, a job, its checkpoints, a table
  weir run checkpoint-demo               one job in this process

A cluster:
  weir jobmanager                        plans, checkpoints, recovers
  weir taskmanager --slots 2             runs tasks; start as many as you need
  weir submit checkpoint-demo --detach   give it work
  weir list, show, checkpoints, cancel   look after it
  weir savepoint JOB, weir stop JOB      keep its state, and go on from it later
  weir backpressure JOB                  which operator holds up the others

What lies in storage:
  weir savepoint check PATH ENTRY        can the new version go on from it? ask before you stop
  weir checkpoint inspect, verify PATH   what a snapshot holds, and whether it is whole
  weir checkpoint gc                     what nobody needs any more

Every command that prints something takes -o json for scripts. Exit codes: 0 done; 1 it
failed, or the job did; 2 the call was wrong (a flag, an entry point, a parameter, an
option, a job that cannot be built); 130 interrupted.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "A distributed stateful stream processor",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.Err)
	root.SetIn(a.streams.In)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SuggestionsMinimumDistance = 2
	p := root.PersistentFlags()
	p.StringVar(&a.jobManager, "jobmanager", DefaultJobManager, "address of the JobManager, or several separated by commas")
	p.StringVarP(&a.output, "output", "o", "text", "what to print: text or json")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.output != "text" && a.output != "json" {
			return usageError{fmt.Errorf("unknown output %q: want text or json", a.output)}
		}
		return nil
	}
	root.AddCommand(
		a.submitCommand(), a.runCommand(), a.listCommand(), a.showCommand(), a.cancelCommand(), a.savepointCommand(), a.stopCommand(),
		a.checkpointsCommand(), a.checkpointCommand(), a.backpressureCommand(), a.planCommand(), a.demoCommand(),
		a.jobManagerCommand(), a.taskManagerCommand(),
	)
	return root
}

// noSuchCommand is the check of arguments of a command that only groups others.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown command %q%s", args[0], suggestion(cmd, args[0]))}
	}
	return nil
}

func suggestion(cmd *cobra.Command, arg string) string {
	if s := cmd.SuggestionsFor(arg); len(s) > 0 {
		return ": did you mean " + strings.Join(s, " or ") + "?"
	}
	return ""
}

// exactly wraps cobra's check of the number of arguments.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("%s takes %s, got %d arguments", cmd.CommandPath(), what, len(args))}
		}
		return nil
	}
}

// connect makes a client of the cluster.
func (a *app) connect() (*client.Client, error) {
	return client.New(strings.Split(a.jobManager, ","), client.Options{})
}

// withClient runs a command's body against the cluster.
func (a *app) withClient(body func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		return errors.Join(body(cmd.Context(), c, args), c.Close())
	}
}

func (a *app) json() bool { return a.output == "json" }
