package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// checkpointJSON is a checkpoint for scripts.
type checkpointJSON struct {
	Checkpoint  int64         `json:"checkpoint"`
	Kind        string        `json:"kind"`
	Type        string        `json:"type"` // as Flink's statistics name it
	Status      string        `json:"status"`
	Triggered   string        `json:"triggered"`
	DurationMS  float64       `json:"duration_ms"`
	Bytes       int64         `json:"bytes"`
	InFlight    int64         `json:"persisted_bytes"` // in-flight data in bytes
	Path        string        `json:"path,omitempty"`
	Reason      string        `json:"reason,omitempty"`
	Message     string        `json:"message,omitempty"`
	QueuedBytes int64         `json:"queued_bytes"`
	PredictedMS float64       `json:"predicted_ms"`
	Subtasks    []subtaskJSON `json:"subtasks"`
}

type subtaskJSON struct {
	Vertex         string  `json:"vertex"`
	Subtask        int32   `json:"subtask"`
	Attempt        int32   `json:"attempt"`
	AcknowledgedMS float64 `json:"acknowledged_ms"`
	StartDelayMS   float64 `json:"start_delay_ms"`
	AlignmentMS    float64 `json:"alignment_ms"`
	SyncMS         float64 `json:"sync_ms"`
	AsyncMS        float64 `json:"async_ms"`
	StateBytes     int64   `json:"state_bytes"`
	AlignedBytes   int64   `json:"aligned_bytes"`
	PersistedBytes int64   `json:"persisted_bytes"`
	Unaligned      bool    `json:"unaligned"`
	QueuedBytes    int64   `json:"queued_bytes"`
	DrainRate      float64 `json:"drain_bytes_per_second"`
}

func checkpointJSONOf(c rpc.CheckpointInfo) checkpointJSON {
	p := predict(c)
	out := checkpointJSON{
		Checkpoint: int64(c.ID), Kind: c.Kind.String(), Type: c.Type(), Status: c.Status.String(), Triggered: stamp(c.Triggered),
		DurationMS: millisOf(c.Duration), Bytes: c.Bytes, InFlight: c.PersistedBytes, Path: c.Path, Message: c.Message,
		QueuedBytes: p.queued, PredictedMS: millisOf(p.wait), Subtasks: []subtaskJSON{},
	}
	if c.Status == rpc.CheckpointFailed {
		out.Reason = c.Reason.String()
	}
	for _, s := range c.Subtasks {
		m := s.Metrics
		out.Subtasks = append(out.Subtasks, subtaskJSON{
			Vertex: s.Vertex, Subtask: s.Attempt.Subtask, Attempt: s.Attempt.N, AcknowledgedMS: millisOf(s.Acknowledged),
			StartDelayMS: millisOf(m.StartDelay), AlignmentMS: millisOf(m.AlignmentDuration), SyncMS: millisOf(m.SyncDuration),
			AsyncMS: millisOf(m.AsyncDuration), StateBytes: m.StateBytes, AlignedBytes: m.AlignedBytes,
			PersistedBytes: m.PersistedBytes, Unaligned: m.Unaligned, QueuedBytes: m.QueuedBytes, DrainRate: m.DrainRate,
		})
	}
	return out
}

// prediction is how long the barriers of a checkpoint had to wait, from what was
// known when it was triggered.
type prediction struct {
	queued int64         // bytes ahead of the barriers at the slowest subtask
	wait   time.Duration // these ÷ that subtask's drain rate before the trigger
}

// predict takes the subtask whose queue takes longest to drain.
func predict(c rpc.CheckpointInfo) (worst prediction) {
	for _, s := range c.Subtasks {
		m := s.Metrics
		if m.DrainRate <= 0 {
			worst.queued = max(worst.queued, m.QueuedBytes)
			continue
		}
		wait := time.Duration(float64(m.QueuedBytes) / m.DrainRate * float64(time.Second))
		if wait >= worst.wait {
			worst = prediction{queued: m.QueuedBytes, wait: wait}
		}
	}
	return worst
}

func (a *app) checkpointsCommand() *cobra.Command {
	var subtasks bool
	cmd := &cobra.Command{
		Use:   "checkpoints JOB",
		Short: "List a job's recent checkpoints, newest first",
		Long: `Checkpoints lists the last checkpoints of a job, named by its id or by its name: how long
they took, how large they are, where they lie, and for failed ones why.

IN FLIGHT is the data that barriers overtook, part of SIZE; - where they waited their turn.
QUEUED is what lay ahead of the barriers at the slowest subtask when the checkpoint was
triggered, PREDICTED that divided by the rate at which the subtask drained its input.
With --subtasks each subtask's share is shown.`,
		Args: exactly(1, "the id or name of a job"),
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		l, err := c.Checkpoints(ctx, args[0])
		if err != nil {
			return err
		}
		if a.json() {
			for _, info := range l.Recent {
				if err := printJSON(a.streams.Out, checkpointJSONOf(info)); err != nil {
					return err
				}
			}
			return nil
		}
		printCheckpoints(a.streams.Out, l, subtasks)
		return nil
	})
	cmd.Flags().BoolVar(&subtasks, "subtasks", false, "show every subtask's share")
	return cmd
}

// inFlightText is the in-flight data of what did not wait for all barriers.
func inFlightText(unaligned bool, bytes int64) string {
	if !unaligned {
		return "-"
	}
	return bytesText(bytes)
}

func printCheckpoints(w io.Writer, l rpc.CheckpointList, subtasks bool) {
	fmt.Fprintf(w, "completed %d  failed %d  in progress %d", l.Completed, l.Failed, l.Pending)
	if l.Restored > 0 {
		fmt.Fprintf(w, "  restored from %d", l.Restored)
	}
	fmt.Fprintln(w)
	if len(l.Recent) == 0 {
		return
	}
	var t table
	t.row(right("ID"), "STATUS", "TRIGGERED", right("DURATION"), right("SIZE"), right("IN FLIGHT"), right("QUEUED"), right("PREDICTED"), "")
	for _, c := range l.Recent {
		p := predict(c)
		note := c.Path
		if c.Status == rpc.CheckpointFailed {
			note = c.Reason.String()
			if c.Message != "" {
				note += ": " + c.Message
			}
		}
		t.row(right(fmt.Sprint(int64(c.ID))), c.Status.String(), when(c.Triggered), right(durationText(c.Duration)),
			right(bytesText(c.Bytes)), right(inFlightText(c.Unaligned, c.PersistedBytes)), right(bytesText(p.queued)), right(durationText(p.wait)), note)
		if !subtasks {
			continue
		}
		for _, s := range c.Subtasks {
			m := s.Metrics
			t.row("", fmt.Sprintf("  %s[%d]", s.Vertex, s.Attempt.Subtask), fmt.Sprintf("acknowledged +%s", durationText(s.Acknowledged)),
				right("sync "+durationText(m.SyncDuration)), right(bytesText(m.StateBytes)), right(inFlightText(m.Unaligned, m.PersistedBytes)),
				right(bytesText(m.QueuedBytes)), right(""),
				fmt.Sprintf("start delay %s, alignment %s, async %s", durationText(m.StartDelay), durationText(m.AlignmentDuration), durationText(m.AsyncDuration)))
		}
	}
	t.print(w)
}
