package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/rpc"
)

// demoCheckpoints is how many checkpoints a row of the demo waits for.
const demoCheckpoints = 6

// demo is one run of the demo.
type demo struct {
	app      *app
	duration time.Duration
	interval time.Duration
	rate     int
	sleep    time.Duration
	modes    []string
	keep     string
	plot     string

	group     *group.Group
	ended     func() // is called when a process has ended
	dir       string
	processes []*process
	client    *client.Client
	rows      []demoRow
	lastPath  string
}

// demoRow is one completed checkpoint.
type demoRow struct {
	mode  *demoMode
	n     int // 0 for the row's first
	info  rpc.CheckpointInfo
	guess prediction
}

func (a *app) demoCommand() *cobra.Command {
	d := &demo{app: a}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start a cluster, run the checkpoint experiment, print its table",
		Long: `Demo starts a JobManager and two TaskManagers as processes of their own on free ports of
this machine, submits checkpoint-demo and waits for six checkpoints in each mode: first as
fast as the data comes, then with a slow consumer, so that data queues ahead of the barriers,
which wait their turn or overtake it. Its table sets each checkpoint's duration beside what
the queue predicts, bytes queued ahead of the barriers ÷ rate at which they drained, and
beside what Flink 2.3.0 showed. --plot draws it.

A mode takes about half a minute; --mode picks some. docs/checkpoint-experiment.md says what
each of them shows.

Everything is stopped and removed at the end, also after an interrupt. --keep DIR keeps the
checkpoints and prints the last one's path; weir submit checkpoint-demo --from PATH goes on
from it.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.DurationVar(&d.duration, "duration", 2*time.Minute, "longest time for one row")
	f.DurationVar(&d.interval, "interval", 5*time.Second, "time between checkpoints")
	f.IntVar(&d.rate, "rate", 2000, "records per second")
	f.DurationVar(&d.sleep, "sleep", 5*time.Millisecond, "time per record of the slow consumer; aligned-faster-sink takes a fifth")
	f.StringSliceVar(&d.modes, "mode", nil, "rows to run: "+demoModeNames()+" (default: all)")
	f.StringVar(&d.plot, "plot", "", "SVG file to draw the durations into")
	f.StringVar(&d.keep, "keep", "", "directory that keeps the checkpoints")
	return cmd
}

// run starts the cluster, runs the rows and prints them.
func (d *demo) run(ctx context.Context) (err error) {
	modes, err := selectModes(d.modes)
	if err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.ended = func() { cancel(errDied) }
	d.group = group.New(context.WithoutCancel(ctx), "demo")
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.start(ctx); err != nil {
		return err
	}
	for _, m := range modes {
		if err := d.row(ctx, m); err != nil {
			return errors.Join(err, d.died())
		}
	}
	if !d.app.json() {
		printDemo(d.app.streams.Out, d.rows)
	}
	if d.plot != "" {
		if err := writePlot(d.plot, d.rows); err != nil {
			return err
		}
	}
	switch {
	case d.keep == "":
	case d.app.json(): // standard output has a line for each checkpoint and nothing else
		fmt.Fprintf(d.app.streams.Err, "last checkpoint:\n%s\n", d.lastPath)
	default:
		fmt.Fprintf(d.app.streams.Out, "\nlast checkpoint:\n%s\n", d.lastPath)
	}
	return nil
}

func (d *demo) check() error {
	switch {
	case d.interval <= 0 || d.duration <= 0:
		return usageError{errors.New("--interval and --duration must be longer than nothing")}
	case d.rate <= 0:
		return usageError{errors.New("--rate must be at least 1 record per second")}
	case d.sleep < 0:
		return usageError{errors.New("--sleep must not be negative")}
	case d.plot != "":
		return checkPlot(d.plot)
	}
	return nil
}

// start starts the cluster's processes.
func (d *demo) start(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "weir-demo-"); err != nil {
		return err
	}
	checkpoints := filepath.Join(d.dir, "checkpoints")
	if d.keep != "" {
		if checkpoints, err = filepath.Abs(d.keep); err != nil {
			return err
		}
	}
	d.say("starting a JobManager and two TaskManagers")
	ready, err := d.process(ctx, "jobmanager", "jobmanager", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
		"--data-dir", filepath.Join(d.dir, "jobmanager"), "--checkpoint-dir", checkpoints)
	if err != nil {
		return err
	}
	for i := range 2 { // a slot each, so that the job's two subtasks are on both
		name := fmt.Sprintf("taskmanager-%d", i+1)
		if _, err := d.process(ctx, name, "taskmanager", "--jobmanager", ready.Control, "--listen", "127.0.0.1:0",
			"--metrics-listen", "127.0.0.1:0", "--slots", "1", "--data-dir", filepath.Join(d.dir, name)); err != nil {
			return err
		}
	}
	d.client, err = client.New([]string{ready.Control}, client.Options{})
	return err
}

func (d *demo) process(ctx context.Context, name string, args ...string) (Ready, error) {
	p, ready, err := startProcess(ctx, d.group, d.ended, d.app.roles.Executable, d.dir, name, args...)
	if p != nil {
		d.processes = append(d.processes, p)
	}
	return ready, err
}

// errDied ends the demo when one of its processes does.
var errDied = errors.New("the cluster broke")

// died is the error of processes that have ended by themselves, with the ends of their
// logs, which will be gone.
func (d *demo) died() error {
	var errs []error
	for _, p := range d.processes {
		select {
		case <-p.ended:
			errs = append(errs, fmt.Errorf("%s ended: %v; its log ends with\n%s", p.name, p.cmd.ProcessState, p.tail()))
		default:
		}
	}
	return errors.Join(errs...)
}

// stop ends the processes, TaskManagers first, and removes what they wrote.
func (d *demo) stop() error {
	var errs []error
	if d.client != nil {
		errs = append(errs, d.client.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, p := range slices.Backward(d.processes) {
		errs = append(errs, p.stop(ctx))
	}
	errs = append(errs, d.group.Stop(ctx))
	if d.dir != "" {
		errs = append(errs, os.RemoveAll(d.dir))
	}
	return errors.Join(errs...)
}

// say prints what happens next.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.app.streams.Err, format+"\n", args...)
}

// row runs the job in one mode until it has completed enough checkpoints.
func (d *demo) row(ctx context.Context, m *demoMode) error {
	sleep := m.pace.sleep(d.sleep).String()
	options := map[string]string{keyInterval: d.interval.String()}
	maps.Copy(options, m.options)
	d.say("%s: %d checkpoints, one every %s, %d records/s, %s per record", m.name, demoCheckpoints, d.interval, d.rate, sleep)
	reply, err := d.client.Submit(ctx, rpc.SubmitRequest{
		Entrypoint: "checkpoint-demo", Name: "demo-" + m.name, Options: options,
		Params: map[string]string{"rate": fmt.Sprint(d.rate), "sleep": sleep},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	err = d.watch(ctx, m, reply.Job.String())
	if ctx.Err() != nil { // everything ends
		return err
	}
	return errors.Join(err, d.end(ctx, reply.Job.String()))
}

// watch follows a row's job and collects its checkpoints.
func (d *demo) watch(ctx context.Context, m *demoMode, job string) error {
	bounded, cancel := context.WithTimeout(ctx, d.duration)
	defer cancel()
	p := d.app.progress()
	defer p.done()
	seen := 0
	detail, err := client.Await(bounded, d.client, job, func(detail rpc.JobDetail) bool {
		l, err := d.client.Checkpoints(bounded, job)
		if err == nil {
			seen = d.collect(m, l, seen, p)
		}
		p.show(fmt.Sprintf("  checkpoint %d of %d  %s", seen, demoCheckpoints, jobLine(detail, true)), "")
		return seen >= demoCheckpoints || detail.Status.Final()
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil && seen > 0:
		return nil // as many as the time allowed
	case bounded.Err() != nil:
		return fmt.Errorf("%s: no checkpoint completed in %s; the job is %s %s", m.name, d.duration, detail.Status, detail.Detail)
	case err != nil:
		return fmt.Errorf("%s: %w", m.name, err)
	case detail.Status.Final():
		return fmt.Errorf("%s: %w", m.name, failed(detail))
	}
	return nil
}

// collect takes the row's newly completed checkpoints, oldest first, and returns how
// many there are now.
func (d *demo) collect(m *demoMode, l rpc.CheckpointList, seen int, p *progress) int {
	var last rpc.CheckpointInfo
	if seen > 0 {
		last = d.rows[len(d.rows)-1].info
	}
	for _, c := range slices.Backward(l.Recent) {
		if c.Status != rpc.CheckpointCompleted || c.ID <= last.ID || seen >= demoCheckpoints {
			continue
		}
		r := demoRow{mode: m, n: seen, info: c, guess: predict(c)}
		d.rows = append(d.rows, r)
		d.lastPath = c.Path
		seen++
		p.done()
		if d.app.json() {
			_ = printJSON(d.app.streams.Out, r.json())
		} else {
			d.say("  checkpoint %d: %s, %s%s", c.ID, durationText(c.Duration), bytesText(c.Bytes), r.overtaken())
		}
	}
	return seen
}

// end cancels a row's job and waits until its slots are free.
func (d *demo) end(ctx context.Context, job string) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if err := d.client.Cancel(grace, job); err != nil {
		return err
	}
	_, err := client.Await(grace, d.client, job, client.Ended)
	return err
}
