package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cli/explain"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// explanationJSON is why a checkpoint took as long as it did.
type explanationJSON struct {
	Checkpoint int64      `json:"checkpoint"`
	Type       string     `json:"type"`
	Status     string     `json:"status"`
	Triggered  string     `json:"triggered"`
	DurationMS float64    `json:"duration_ms"`
	Bytes      int64      `json:"bytes"`
	Reason     string     `json:"reason,omitempty"`
	Before     []waitJSON `json:"before"` // the trigger: not part of the duration
	Waits      []waitJSON `json:"waits"`
	Whole      bool       `json:"whole"`
	Advice     string     `json:"advice"`
}

type waitJSON struct {
	Kind    string  `json:"kind"`
	TookMS  float64 `json:"took_ms"`
	Text    string  `json:"text"`
	At      string  `json:"at,omitempty"`
	From    string  `json:"from,omitempty"`
	Input   int32   `json:"input"`
	Channel int32   `json:"channel"`
	Queued  int64   `json:"queued_bytes"`
	Bytes   int64   `json:"bytes"`
}

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain JOB [ID]",
		Short: "Say why a checkpoint took as long as it did",
		Long: `Explain shows what a checkpoint waited for, from the moment it was wanted to the moment its link
was in the registry, and what to do about the longest wait. Without the ID of a checkpoint or
savepoint it takes the slowest of those that are remembered.

The waits follow each other: the way of the barriers is that to the subtask that acknowledged
last, from the source on, over each channel whose barrier came last. Of one that failed or is pending
it ends at a subtask that has not acknowledged. Sizes are what lay ahead of the barrier.`,
		Example: `  weir checkpoint explain orders
  weir checkpoint explain orders 17 -o json`,
		Args: jobAndPerhapsID,
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		id, err := optionalID(args)
		if err != nil {
			return err
		}
		l, err := c.Checkpoints(ctx, args[0])
		if err != nil {
			return err
		}
		info, err := toExplain(l, args[0], id)
		if err != nil {
			return err
		}
		d, err := c.Get(ctx, l.Job.String())
		if err != nil {
			return err
		}
		e := explain.Checkpoint(info, &d.Graph)
		if a.json() {
			return printJSON(a.streams.Out, explanationJSONOf(info, &e))
		}
		printExplanation(a.streams.Out, d.Name, info, &e)
		return nil
	})
	return cmd
}

// toExplain is the checkpoint with an id, or the slowest without one.
func toExplain(l rpc.CheckpointList, job string, id weir.CheckpointID) (*rpc.CheckpointInfo, error) {
	if id != weir.NoCheckpoint {
		return findCheckpoint(l, job, id)
	}
	if i := explain.Slowest(l.Recent); i >= 0 {
		return &l.Recent[i], nil
	}
	return nil, &rpc.Error{
		Code: rpc.CodeNotFound, Message: fmt.Sprintf("there are no statistics of checkpoints of job %q", job),
		Hint: "the JobManager that takes checkpoints remembers them: take one with `weir checkpoint trigger " + job + "`",
	}
}

func explanationJSONOf(c *rpc.CheckpointInfo, e *explain.Explanation) explanationJSON {
	out := explanationJSON{
		Checkpoint: int64(c.ID), Type: c.Type(), Status: c.Status.String(), Triggered: stamp(c.Triggered), DurationMS: millisOf(c.Duration),
		Bytes: c.Bytes, Whole: e.Whole, Advice: e.Advice, Before: []waitJSON{}, Waits: []waitJSON{},
	}
	if c.Status == rpc.CheckpointFailed {
		out.Reason = c.Reason.String()
	}
	wait := func(w explain.Wait) waitJSON {
		return waitJSON{
			Kind: w.Kind.String(), TookMS: millisOf(w.Took), Text: waitText(w), At: w.At.String(), From: w.From.String(),
			Input: w.Input, Channel: w.Channel, Queued: w.Queued, Bytes: w.Bytes,
		}
	}
	for _, w := range e.Before {
		out.Before = append(out.Before, wait(w))
	}
	for _, w := range e.Waits {
		out.Waits = append(out.Waits, wait(w))
	}
	return out
}

// shown is how many waits fit on a screen; of a longer chain the shortest are put
// together.
const shown = 13

func printExplanation(w io.Writer, job string, c *rpc.CheckpointInfo, e *explain.Explanation) {
	fmt.Fprintf(w, "%s %d of %s  %s  triggered %s  %s  %d of %d tasks  %s\n", c.Type(), c.ID, job, c.Status, when(c.Triggered),
		durationText(c.Duration), c.Acknowledged, c.Tasks, bytesText(c.Bytes))
	if c.Status == rpc.CheckpointFailed {
		fmt.Fprintf(w, "failed: %s: %s\n", c.Reason, c.Message)
	}
	fmt.Fprintln(w)
	var t table
	t.row(right("TOOK"), right("SHARE"), "WAITED FOR")
	for _, x := range e.Before {
		t.row(right(durationText(x.Took)), "", waitText(x)+" (before the trigger)")
	}
	rows := longest(e.Waits)
	together, n := time.Duration(0), len(e.Waits)-len(rows)
	for i, x := range e.Waits {
		if !slices.Contains(rows, i) {
			together += x.Took
			continue
		}
		t.row(right(durationText(x.Took)), right(share(x.Took, c.Duration)), waitText(x))
	}
	if n > 0 {
		t.row(right(durationText(together)), right(share(together, c.Duration)), fmt.Sprintf("%d shorter waits (-o json)", n))
	}
	t.row(right(durationText(c.Duration)), right("100 %"), "in all")
	t.print(w)
	if !e.Whole {
		fmt.Fprintln(w, "\nStatistics of its subtasks are not kept any more: the way of the barriers is missing here.")
	}
	fmt.Fprintf(w, "\n%s\n", e.Advice)
}

// longest are the indices of those that have rows of their own.
func longest(waits []explain.Wait) []int {
	rows := make([]int, len(waits))
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(waits[b].Took, waits[a].Took) })
	return rows[:min(len(rows), shown)]
}

func share(part, whole time.Duration) string {
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(max(whole, 1)))
}

// waitText says what was waited for.
func waitText(w explain.Wait) string {
	switch w.Kind {
	case explain.Busy:
		return fmt.Sprintf("%s to take its trigger, between two records", w.At)
	case explain.Queue:
		return fmt.Sprintf("the first barrier at %s%s", w.At, channelText(w))
	case explain.Alignment:
		return fmt.Sprintf("the last barrier at %s, alignment%s", w.At, channelText(w))
	case explain.Sync:
		return fmt.Sprintf("%s to take its snapshot, standing still (sync)", w.At)
	case explain.Async:
		return fmt.Sprintf("%s to write %s (async)", w.At, bytesText(w.Bytes))
	case explain.Tasks:
		return fmt.Sprintf("tasks, of which %s was the last", w.At)
	case explain.Messages:
		return fmt.Sprintf("messages between %s and the JobManager", w.At)
	case explain.Missing:
		if w.Others == 0 {
			return fmt.Sprintf("%s, which did not acknowledge", w.At)
		}
		return fmt.Sprintf("%s, which did not acknowledge, nor did %d others", w.At, w.Others)
	}
	return waitTexts[w.Kind]
}

// waitTexts are those of the JobManager's own waits.
var waitTexts = map[explain.Kind]string{
	explain.Turn: "its turn: other checkpoints, min-pause", explain.Planning: "a list of who takes part", explain.ID: "an id from the registry",
	explain.Location: "the savepoint's location", explain.Coordinators: "operator coordinators to give their state", explain.Hooks: "master hooks",
	explain.Sending: "triggers to be sent", explain.Metadata: "the metadata to be written", explain.LinkTurn: "links of earlier checkpoints",
	explain.Link: "the registry to take its link", explain.Ending: "the JobManager to complete it",
}

func channelText(w explain.Wait) string {
	if w.From == (explain.Subtask{}) {
		return ""
	}
	return fmt.Sprintf(", from %s (input %d, channel %d) behind %s", w.From, w.Input, w.Channel, bytesText(w.Queued))
}
