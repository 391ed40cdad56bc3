package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
)

// jobJSON is a job for scripts.
type jobJSON struct {
	Job            string `json:"job"`
	Name           string `json:"name"`
	Entrypoint     string `json:"entrypoint"`
	Status         string `json:"status"`
	Detail         string `json:"detail,omitempty"`
	Started        string `json:"started,omitempty"`
	Ended          string `json:"ended,omitempty"`
	Tasks          int    `json:"tasks"`
	Running        int    `json:"running"`
	Restarts       int    `json:"restarts"`
	LastCheckpoint int64  `json:"last_checkpoint"`
}

func jobJSONOf(j rpc.JobSummary) jobJSON {
	return jobJSON{
		Job: j.Job.String(), Name: j.Name, Entrypoint: j.Entrypoint, Status: j.Status.String(), Detail: j.Detail,
		Started: stamp(j.Started), Ended: stamp(j.Ended), Tasks: j.Tasks, Running: j.Running, Restarts: j.Restarts,
		LastCheckpoint: int64(j.LastCheckpoint),
	}
}

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the jobs of a cluster, newest first",
		Args:  exactly(0, "no arguments"),
		RunE: a.withClient(func(ctx context.Context, c *client.Client, _ []string) error {
			jobs, err := c.List(ctx)
			if err != nil {
				return err
			}
			if a.json() {
				for _, j := range jobs {
					if err := printJSON(a.streams.Out, jobJSONOf(j)); err != nil {
						return err
					}
				}
				return nil
			}
			if len(jobs) == 0 {
				fmt.Fprintln(a.streams.Err, "no jobs; weir submit starts one")
				return nil
			}
			var t table
			t.row("JOB", "NAME", "STATUS", right("TASKS"), right("RESTARTS"), right("CHECKPOINT"), "STARTED", "")
			for _, j := range jobs {
				t.row(j.Job.String(), j.Name, j.Status.String(), right(fmt.Sprintf("%d/%d", j.Running, j.Tasks)),
					right(fmt.Sprint(j.Restarts)), right(fmt.Sprint(int64(j.LastCheckpoint))), when(j.Started), j.Detail)
			}
			t.print(a.streams.Out)
			return nil
		}),
	}
}

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show JOB",
		Short: "Show a job with its tasks",
		Long:  "Show prints a job, named by its id or by its name, with the state and figures of every task.",
		Args:  exactly(1, "the id or name of a job"),
		RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
			d, err := c.Get(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json() {
				return printJSON(a.streams.Out, detailJSONOf(d))
			}
			a.printDetail(d)
			return nil
		}),
	}
}

// taskJSON is a task for scripts.
type taskJSON struct {
	Vertex         string `json:"vertex"`
	Subtask        int32  `json:"subtask"`
	Attempt        int32  `json:"attempt"`
	State          string `json:"state"`
	TaskManager    string `json:"task_manager,omitempty"`
	Failure        string `json:"failure,omitempty"`
	RecordsIn      int64  `json:"records_in"`
	RecordsOut     int64  `json:"records_out"`
	BytesIn        int64  `json:"bytes_in"`
	BytesOut       int64  `json:"bytes_out"`
	BuffersInUse   int64  `json:"buffers_in_use"`
	BytesQueuedIn  int64  `json:"bytes_queued_in"`
	BytesQueuedOut int64  `json:"bytes_queued_out"`
	loadJSON
}

type detailJSON struct {
	jobJSON
	RequestID    string            `json:"request_id,omitempty"`
	Params       map[string]string `json:"params"`
	Options      map[string]string `json:"options"`
	RestoredFrom string            `json:"restored_from,omitempty"`
	RestoreWhy   string            `json:"restore_reason,omitempty"`
	Savepoint    string            `json:"savepoint,omitempty"`
	Stopping     string            `json:"stopping,omitempty"`
	Failure      string            `json:"failure,omitempty"`
	TaskList     []taskJSON        `json:"task_list"`
}

func detailJSONOf(d rpc.JobDetail) detailJSON {
	out := detailJSON{
		jobJSON: jobJSONOf(d.JobSummary), RequestID: d.RequestID, Params: d.Params, Options: d.Options,
		RestoredFrom: d.RestoredFrom, RestoreWhy: d.RestoreReason, Savepoint: d.Savepoint, Stopping: d.Stopping, TaskList: []taskJSON{},
	}
	if d.Failure != nil {
		out.Failure = d.Failure.Error()
	}
	for _, t := range d.Tasks {
		s := t.Stats
		out.TaskList = append(out.TaskList, taskJSON{
			Vertex: t.Vertex, Subtask: t.Attempt.Subtask, Attempt: t.Attempt.N, State: t.State.String(), TaskManager: t.TaskManager,
			Failure: t.Failure, RecordsIn: s.RecordsIn, RecordsOut: s.RecordsOut, BytesIn: s.BytesIn, BytesOut: s.BytesOut,
			BuffersInUse: s.BuffersInUse, BytesQueuedIn: s.BytesQueuedIn, BytesQueuedOut: s.BytesQueuedOut, loadJSON: loadJSONOf(s),
		})
	}
	return out
}

func (a *app) printDetail(d rpc.JobDetail) {
	w := a.streams.Out
	fmt.Fprintf(w, "job          %s\nid           %s\nentry point  %s\nstatus       %s", d.Name, d.Job, d.Entrypoint, d.Status)
	if d.Detail != "" {
		fmt.Fprintf(w, " (%s)", d.Detail)
	}
	fmt.Fprintf(w, "\nstarted      %s\n", when(d.Started))
	if !d.Ended.IsZero() {
		fmt.Fprintf(w, "ended        %s\n", when(d.Ended))
	}
	fmt.Fprintf(w, "restarts     %d\ncheckpoint   %d\n", d.Restarts, d.LastCheckpoint)
	if d.Savepoint != "" {
		fmt.Fprintf(w, "savepoint    %s\n", d.Savepoint)
	}
	if d.Stopping != "" {
		fmt.Fprintf(w, "stopping     by request %s\n", d.Stopping)
	}
	switch {
	case d.RestoredFrom != "" && d.RestoreReason != "":
		fmt.Fprintf(w, "restored     %s (%s)\n", d.RestoredFrom, d.RestoreReason)
	case d.RestoredFrom != "":
		fmt.Fprintf(w, "restored     %s\n", d.RestoredFrom)
	case d.RestoreReason != "":
		fmt.Fprintf(w, "restored     nothing (%s)\n", d.RestoreReason)
	}
	if d.Failure != nil {
		fmt.Fprintf(w, "failure      %v\n", d.Failure)
		if d.Failure.Stack != "" {
			fmt.Fprintf(w, "%s\n", strings.TrimSpace(d.Failure.Stack))
		}
	}
	fmt.Fprintln(w)
	var t table
	t.row("TASK", "STATE", "TASKMANAGER", right("RECORDS IN"), right("OUT"), right("BUSY"), right("BACK-PRESSURED"), right("IDLE"), "")
	shown, rest := noteworthy(d)
	for _, task := range shown {
		s := task.Stats
		t.row(fmt.Sprintf("%s[%d]", task.Vertex, task.Attempt.Subtask), task.State.String(), task.TaskManager,
			right(fmt.Sprint(s.RecordsIn)), right(fmt.Sprint(s.RecordsOut)),
			right(percent(s.BusyRatio)), right(percent(s.BackPressured)), right(percent(s.IdleRatio)), task.Failure)
	}
	t.print(w)
	if rest != "" {
		fmt.Fprintln(w, rest)
	}
}

// noteworthy are the tasks to show and a line about the others. Where tasks have failed,
// those are shown, the one that the job failed of first, and the others, which were
// canceled because of it, only counted.
func noteworthy(d rpc.JobDetail) (shown []rpc.TaskDetail, rest string) {
	tasks := d.Tasks
	var failed []rpc.TaskDetail
	others := make(map[string]int)
	for _, t := range tasks {
		switch {
		case t.Failure == "":
			others[t.State.String()]++
		case d.Failure != nil && t.Failure == d.Failure.Error():
			failed = slices.Insert(failed, 0, t)
		default:
			failed = append(failed, t)
		}
	}
	if len(failed) == 0 || len(others) == 0 {
		return tasks, ""
	}
	var counts []string
	for _, state := range slices.Sorted(maps.Keys(others)) {
		counts = append(counts, fmt.Sprintf("%d %s", others[state], state))
	}
	return failed, fmt.Sprintf("and %d more: %s (-o json lists all)", len(tasks)-len(failed), strings.Join(counts, ", "))
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel JOB",
		Short: "Cancel a job and wait until it has ended",
		Long:  "Cancel ends a job, named by its id or by its name, and waits until its tasks have ended. Its\ncheckpoints are kept.",
		Args:  exactly(1, "the id or name of a job"),
		RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
			d, err := c.Get(ctx, args[0])
			if err != nil {
				return err
			}
			id := d.Job.String()
			p := a.progress()
			d, err = client.CancelAndAwait(ctx, c, id, func(d rpc.JobDetail) { p.show(jobLine(d, true), "") })
			p.done()
			if err != nil {
				return err
			}
			if a.json() {
				return printJSON(a.streams.Out, jobJSONOf(d.JobSummary))
			}
			_, err = fmt.Fprintf(a.streams.Out, "job %s is %s\n", d.Name, d.Status)
			return err
		}),
	}
}

func (a *app) planCommand() *cobra.Command {
	var j job
	cmd := &cobra.Command{
		Use:   "plan ENTRY",
		Short: "Show the graph that a submission would run, and start nothing",
		Args:  exactly(1, "the name of an entry point"),
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		r, err := j.request(args[0])
		if err != nil {
			return err
		}
		plan, err := c.Plan(ctx, r)
		if err != nil {
			return err
		}
		if a.json() {
			return printJSON(a.streams.Out, planJSONOf(plan))
		}
		a.printPlan(plan)
		return nil
	})
	j.flags(cmd)
	return cmd
}

func (a *app) printPlan(p rpc.PlanReply) {
	w := a.streams.Out
	for _, v := range p.Graph.Vertices {
		fmt.Fprintf(w, "%d  %s  × %d  (at most %d)\n", v.Index, v.Name, v.Parallelism, v.MaxParallelism)
		for _, e := range v.Outputs {
			edge := p.Graph.Edges[e]
			fmt.Fprintf(w, "   └─ %s ─> %d  %s\n", edge.Partitioning, edge.To, edge.ToOperator)
		}
	}
	fmt.Fprintf(w, "\nslots needed  %d\ngraph hash    %s\n", p.Slots, p.Graph.Hash)
	for _, warning := range p.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
	fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(p.Text))
}

type vertexJSON struct {
	Name           string   `json:"name"`
	Operators      []string `json:"operators"`
	Parallelism    int      `json:"parallelism"`
	MaxParallelism int      `json:"max_parallelism"`
}

type edgeJSON struct {
	From         int    `json:"from"`
	To           int    `json:"to"`
	FromOperator string `json:"from_operator"`
	ToOperator   string `json:"to_operator"`
	Partitioning string `json:"partitioning"`
}

type planJSON struct {
	Hash     string       `json:"hash"`
	Slots    int          `json:"slots"`
	Vertices []vertexJSON `json:"vertices"`
	Edges    []edgeJSON   `json:"edges"`
	Warnings []string     `json:"warnings"`
	Text     string       `json:"text"`
}

func planJSONOf(p rpc.PlanReply) planJSON {
	out := planJSON{Hash: p.Graph.Hash.String(), Slots: p.Slots, Warnings: append([]string{}, p.Warnings...), Text: p.Text}
	for _, v := range p.Graph.Vertices {
		out.Vertices = append(out.Vertices, vertexJSON{v.Name, v.Operators, v.Parallelism, v.MaxParallelism})
	}
	for _, e := range p.Graph.Edges {
		out.Edges = append(out.Edges, edgeJSONOf(e))
	}
	return out
}

func edgeJSONOf(e jobgraph.Edge) edgeJSON {
	return edgeJSON{e.From, e.To, e.FromOperator, e.ToOperator, e.Partitioning.String()}
}
