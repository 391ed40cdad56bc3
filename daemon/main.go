package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/weirflow/weir/cli"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/internal/stoppoint"
)

// exitInterrupted is the exit code that a shell expects of an interrupted command.
const exitInterrupted = 130

// errInterrupted is the cause of an end by signal.
var errInterrupted = fmt.Errorf("interrupted: %w", context.Canceled)

// Main is the main function of a binary that carries these jobs: it plays whichever
// role the command line asks for. A binary called jobmanager or taskmanager plays
// that role. Main does not return.
func Main(jobs ...flow.Job) {
	args := os.Args[1:]
	switch base := filepath.Base(os.Args[0]); base {
	case "jobmanager", "taskmanager":
		args = append([]string{base}, args...)
	}
	os.Exit(run(jobs, args))
}

func run(jobs []flow.Job, args []string) int {
	if err := stoppoint.Arm(os.Getenv(stoppoint.Variable)); err != nil {
		fmt.Fprintln(os.Stderr, "weir:", err)
		return cli.ExitUsage
	}
	roles, err := newRoles(jobs)
	if err != nil {
		fmt.Fprintln(os.Stderr, "weir:", err)
		return cli.ExitFailure
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stop := interruptible(ctx, cancel)
	defer stop()
	code := cli.Main(ctx, roles, streams(), args)
	if errors.Is(context.Cause(ctx), errInterrupted) && code == cli.ExitFailure {
		return exitInterrupted
	}
	return code
}

// interruptible cancels on the first signal and ends the process on the second.
func interruptible(ctx context.Context, cancel context.CancelCauseFunc) (stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	g := group.New(context.WithoutCancel(ctx), "signals")
	_ = g.Go("signals", func(done context.Context) error { // a new group refuses nothing
		for first := true; ; first = false {
			select {
			case <-signals:
			case <-done.Done():
				return nil
			}
			if !first {
				os.Exit(exitInterrupted)
			}
			cancel(errInterrupted)
		}
	})
	return func() {
		signal.Stop(signals)
		_ = g.Stop(context.WithoutCancel(ctx)) // it ends at once
	}
}

func streams() cli.Streams {
	s := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Width: 80}
	if fd := int(os.Stderr.Fd()); term.IsTerminal(fd) {
		s.Terminal = true
		if w, _, err := term.GetSize(fd); err == nil {
			s.Width = w
		}
	}
	return s
}

func newRoles(jobs []flow.Job) (cli.Roles, error) {
	catalog, err := flow.NewCatalog(jobs...)
	if err != nil {
		return cli.Roles{}, err
	}
	code, err := CodeID()
	if err != nil {
		return cli.Roles{}, fmt.Errorf("identify this binary: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return cli.Roles{}, err
	}
	p := &process{catalog: catalog, codeID: code, logs: os.Stderr}
	return cli.Roles{
		Catalog: catalog, CodeID: code, Executable: exe,
		JobManager: p.jobManager, TaskManager: p.taskManager, Local: p.local,
	}, nil
}
