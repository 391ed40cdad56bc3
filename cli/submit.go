package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/rpc"
)

// job is what the flags of submit, run and plan describe.
type job struct {
	params, options pairs
	parallelism     int
	interval        time.Duration
	from, name      string
	requestID       string
	detach          bool
	restoreMode     string
	allowDropped    bool
	fromGiven       func() bool
}

func (j *job) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	j.fromGiven = func() bool { return f.Changed("from") }
	f.Var(&j.params, "param", "a parameter of the job; may be repeated")
	f.Var(&j.options, "set", "a job option (docs/config.md); may be repeated")
	f.IntVar(&j.parallelism, "parallelism", 0, "parallelism of operators that name none (default 1)")
	f.DurationVar(&j.interval, "checkpoint-interval", 0, "time between checkpoints, for example 5s (default: none)")
	f.StringVar(&j.from, "from", "", "what to start from: the path of a checkpoint or savepoint, latest (the newest of the last job of this name) or none")
	f.StringVar(&j.restoreMode, "restore-mode", "", "whose the snapshot is then: no-claim (left alone, the default) or claim (the job's own, which deletes it when newer ones replace it)")
	f.BoolVar(&j.allowDropped, "allow-non-restored-state", false, "start though the snapshot has state of operators that the job does not have")
	f.StringVar(&j.name, "name", "", "name of the job (default: the entry point's)")
}

// request is the submission; flags are aliases of options.
func (j *job) request(entrypoint string) (rpc.SubmitRequest, error) {
	options := map[string]string{}
	for k, v := range j.options {
		options[k] = v
	}
	if j.interval < 0 || j.parallelism < 0 {
		return rpc.SubmitRequest{}, usageError{errors.New("--checkpoint-interval and --parallelism must not be negative")}
	}
	if j.from == "" && j.fromGiven != nil && j.fromGiven() { // the variable of a script that got no path
		return rpc.SubmitRequest{}, usageError{errors.New("--from is empty: give a path, latest, or none to begin with nothing")}
	}
	if j.interval > 0 {
		const key = "execution.checkpointing.interval"
		if _, twice := options[key]; twice {
			return rpc.SubmitRequest{}, usageError{fmt.Errorf("--checkpoint-interval and --set %s say the same thing: give one", key)}
		}
		options[key] = j.interval.String()
	}
	if err := j.recovery(options); err != nil {
		return rpc.SubmitRequest{}, err
	}
	return rpc.SubmitRequest{
		Entrypoint: entrypoint, Params: j.params, Name: j.name, RequestID: j.requestID,
		Options: options, Parallelism: j.parallelism, From: j.from,
	}, nil
}

// recovery adds what flags say about the start.
func (j *job) recovery(options map[string]string) error {
	add := func(flag, key, value string) error {
		if was, twice := options[key]; twice && was != value {
			return usageError{fmt.Errorf("%s and --set %s contradict each other: give one", flag, key)}
		}
		options[key] = value
		return nil
	}
	switch j.restoreMode {
	case "":
	case "claim", "no-claim":
		value := strings.ToUpper(strings.ReplaceAll(j.restoreMode, "-", "_"))
		if err := add("--restore-mode", joboption.KeyClaimMode, value); err != nil {
			return err
		}
	default:
		return usageError{fmt.Errorf("--restore-mode %q: want claim or no-claim", j.restoreMode)}
	}
	if j.allowDropped {
		return add("--allow-non-restored-state", joboption.KeyIgnoreUnclaimed, "true")
	}
	return nil
}

func (a *app) submitCommand() *cobra.Command {
	var j job
	cmd := &cobra.Command{
		Use:   "submit ENTRY",
		Short: "Submit a job to a cluster and follow it",
		Long: `Submit starts the job that the cluster's binary carries under this name, and follows
it until it ends. An interrupt stops the following, not the job.

With --detach it returns as soon as the job is accepted. A job's name is free again when
the job has ended. --request-id makes a submission safe to repeat: a second one with the
same id returns the first one's job.`,
		Example: `  weir submit checkpoint-demo --param rate=1000 --checkpoint-interval 5s --detach
  weir submit checkpoint-demo --from /data/checkpoints/4f…/chk-12
  weir submit checkpoint-demo --from latest --restore-mode claim`,
		Args: exactly(1, "the name of an entry point"),
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		if j.requestID == "" {
			j.requestID = rand.Text()
		}
		r, err := j.request(args[0])
		if err != nil {
			return err
		}
		reply, err := c.Submit(ctx, r)
		if err != nil {
			return err
		}
		if err := a.accepted(reply); err != nil || j.detach {
			return err
		}
		err = a.follow(ctx, c, reply)
		if err != nil && ctx.Err() != nil {
			fmt.Fprintf(a.streams.Err, "job %s goes on; weir show %s, weir cancel %s\n", reply.Name, reply.Job, reply.Job)
			return nil
		}
		return err
	})
	j.flags(cmd)
	cmd.Flags().StringVar(&j.requestID, "request-id", "", "makes the submission safe to repeat (default: a random one)")
	cmd.Flags().BoolVar(&j.detach, "detach", false, "do not follow the job")
	return cmd
}

// accepted prints a submission's reply.
func (a *app) accepted(r rpc.SubmitReply) error {
	if a.json() {
		return printJSON(a.streams.Out, map[string]any{"job": r.Job.String(), "name": r.Name, "existed": r.Existed})
	}
	verb := "submitted"
	if r.Existed {
		verb = "was submitted before"
	}
	_, err := fmt.Fprintf(a.streams.Out, "job %s (%s) %s\n", r.Name, r.Job, verb)
	return err
}

// follow shows a job's progress until it ends, or ctx does.
func (a *app) follow(ctx context.Context, g rpc.ClientGateway, reply rpc.SubmitReply) error {
	p := a.progress()
	d, err := client.Await(ctx, g, reply.Job.String(), func(d rpc.JobDetail) bool {
		p.show(jobLine(d, true), jobLine(d, false))
		return d.Status.Final()
	})
	p.done()
	if err != nil {
		return err
	}
	return a.outcome(d)
}

// outcome prints how a job ended; a failed one is a failure.
func (a *app) outcome(d rpc.JobDetail) error {
	var err error
	if a.json() {
		err = printJSON(a.streams.Out, jobJSONOf(d.JobSummary))
	}
	if d.Status == rpc.JobFailed {
		return errors.Join(err, failed(d))
	}
	if !a.json() {
		_, err = fmt.Fprintf(a.streams.Out, "job %s is %s\n", d.Name, d.Status)
	}
	return err
}

// failed is the error of a job that did not end as it should.
func failed(d rpc.JobDetail) error {
	if d.Failure != nil {
		return fmt.Errorf("job %s is %s: %w", d.Name, d.Status, d.Failure)
	}
	return fmt.Errorf("job %s is %s: %s", d.Name, d.Status, d.Detail)
}

// jobLine is a job's progress on one line; live adds what changes all the time.
func jobLine(d rpc.JobDetail, live bool) string {
	s := fmt.Sprintf("%s  %s  %d of %d tasks run", d.Name, d.Status, d.JobSummary.Running, d.JobSummary.Tasks)
	if d.Restarts > 0 {
		s += fmt.Sprintf("  %d restarts", d.Restarts)
	}
	if d.Detail != "" {
		s += "  " + d.Detail
	}
	if live {
		var in, out int64
		for _, t := range d.Tasks {
			in += t.Stats.RecordsIn
			out += t.Stats.RecordsOut
		}
		s += fmt.Sprintf("  records in %d out %d", in, out)
		if d.LastCheckpoint > 0 {
			s += fmt.Sprintf("  checkpoint %d", d.LastCheckpoint)
		}
		if !d.Started.IsZero() {
			s += "  " + time.Since(d.Started).Round(time.Second).String()
		}
	}
	return s
}
