package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// checkpointJSON is a checkpoint for scripts.
type checkpointJSON struct {
	Checkpoint   int64                  `json:"checkpoint"`
	Kind         string                 `json:"kind"`
	Type         string                 `json:"type"` // as Flink's statistics name it
	Status       string                 `json:"status"`
	Triggered    string                 `json:"triggered"`
	DurationMS   float64                `json:"duration_ms"`
	Bytes        int64                  `json:"bytes"`
	InFlight     int64                  `json:"persisted_bytes"` // in-flight data in bytes
	Path         string                 `json:"path,omitempty"`
	Reason       string                 `json:"reason,omitempty"`
	Message      string                 `json:"message,omitempty"`
	QueuedBytes  int64                  `json:"queued_bytes"`
	PredictedMS  float64                `json:"predicted_ms"`
	NewBytes     int64                  `json:"new_bytes"`
	Tasks        int                    `json:"tasks"`
	Acknowledged int                    `json:"acknowledged"`
	Steps        map[string]float64     `json:"steps_ms"` // after the trigger, negative before
	Vertices     []vertexCheckpointJSON `json:"vertices"`
	Subtasks     []subtaskJSON          `json:"subtasks"`
	Late         []subtaskJSON          `json:"late"` // acknowledged after it had failed
}

type vertexCheckpointJSON struct {
	Vertex         string  `json:"vertex"`
	Tasks          int     `json:"tasks"`
	Acknowledged   int     `json:"acknowledged"`
	Slowest        int32   `json:"slowest"` // subtask; -1: none acknowledged
	LastAckMS      float64 `json:"last_ack_ms"`
	StartDelayMS   float64 `json:"start_delay_ms"` // the longest, as those below
	AlignmentMS    float64 `json:"alignment_ms"`
	SyncMS         float64 `json:"sync_ms"`
	AsyncMS        float64 `json:"async_ms"`
	StateBytes     int64   `json:"state_bytes"`
	AlignedBytes   int64   `json:"aligned_bytes"`
	PersistedBytes int64   `json:"persisted_bytes"`
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
	// LastBarrier is what it waited for; absent at a source.
	LastBarrier *lastBarrierJSON `json:"last_barrier,omitempty"`
}

type lastBarrierJSON struct {
	Input       int32 `json:"input"`
	Channel     int32 `json:"channel"`
	QueuedBytes int64 `json:"queued_bytes"`
}

func checkpointJSONOf(c rpc.CheckpointInfo) checkpointJSON {
	p := predict(c)
	out := checkpointJSON{
		Checkpoint: int64(c.ID), Kind: c.Kind.String(), Type: c.Type(), Status: c.Status.String(), Triggered: stamp(c.Triggered),
		DurationMS: millisOf(c.Duration), Bytes: c.Bytes, InFlight: c.PersistedBytes, Path: c.Path, Message: c.Message,
		QueuedBytes: p.queued, PredictedMS: millisOf(p.wait), NewBytes: c.NewBytes, Tasks: c.Tasks, Acknowledged: c.Acknowledged,
		Steps: map[string]float64{}, Vertices: []vertexCheckpointJSON{}, Subtasks: []subtaskJSON{}, Late: []subtaskJSON{},
	}
	if c.Status == rpc.CheckpointFailed {
		out.Reason = c.Reason.String()
	}
	for _, s := range c.Steps {
		out.Steps[strings.ReplaceAll(s.Step.String(), " ", "_")] = millisOf(s.At)
	}
	for _, v := range c.Vertices {
		out.Vertices = append(out.Vertices, vertexCheckpointJSON{
			Vertex: v.Name, Tasks: v.Tasks, Acknowledged: v.Acknowledged, Slowest: v.Slowest, LastAckMS: millisOf(v.LastAck),
			StartDelayMS: millisOf(v.StartDelay), AlignmentMS: millisOf(v.Alignment), SyncMS: millisOf(v.Sync), AsyncMS: millisOf(v.Async),
			StateBytes: v.StateBytes, AlignedBytes: v.AlignedBytes, PersistedBytes: v.PersistedBytes,
		})
	}
	for _, s := range c.Subtasks {
		out.Subtasks = append(out.Subtasks, subtaskJSONOf(s))
	}
	for _, s := range c.Late {
		out.Late = append(out.Late, subtaskJSONOf(s))
	}
	return out
}

func subtaskJSONOf(s rpc.SubtaskCheckpoint) subtaskJSON {
	m := s.Metrics
	out := subtaskJSON{
		Vertex: s.Vertex, Subtask: s.Attempt.Subtask, Attempt: s.Attempt.N, AcknowledgedMS: millisOf(s.Acknowledged),
		StartDelayMS: millisOf(m.StartDelay), AlignmentMS: millisOf(m.AlignmentDuration), SyncMS: millisOf(m.SyncDuration),
		AsyncMS: millisOf(m.AsyncDuration), StateBytes: m.StateBytes, AlignedBytes: m.AlignedBytes,
		PersistedBytes: m.PersistedBytes, Unaligned: m.Unaligned, QueuedBytes: m.QueuedBytes, DrainRate: m.DrainRate,
	}
	if b := m.LastBarrier; b.Came {
		out.LastBarrier = &lastBarrierJSON{Input: b.Input, Channel: b.Channel, QueuedBytes: b.Queued}
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

// listed is how many checkpoints are shown without --all.
const listed = 20

func (a *app) checkpointsCommand() *cobra.Command {
	var all, subtasks, summary bool
	cmd := &cobra.Command{
		Use:   "checkpoints JOB [ID]",
		Short: "List a job's recent checkpoints, or show one",
		Long: `Checkpoints lists the newest checkpoints and savepoints of a job, named by its id or by its
name: how long they took, how large they are, where they lie, and for failed ones why. The last
100 are remembered, for a job that has ended too, by the JobManager that took them; --all shows
them all. With the ID of one its operators and subtasks are shown: how long the barriers took to
come (START DELAY) and to be complete (ALIGNMENT), how long the subtask stood still (SYNC) and
wrote (ASYNC). --summary sums up the completed ones.

IN FLIGHT is the data that barriers overtook, part of SIZE; - where they waited their turn.
QUEUED is what lay ahead of the barriers at the slowest subtask when the checkpoint was
triggered, PREDICTED that divided by the rate at which the subtask drained its input.
` + "`weir checkpoint explain`" + ` says what a checkpoint waited for.`,
		Example: `  weir checkpoints orders
  weir checkpoints orders 17
  weir checkpoints orders --summary`,
		Args: jobAndPerhapsID,
	}
	cmd.RunE = a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		id, err := optionalID(args)
		if err != nil {
			return err
		}
		if summary && id != weir.NoCheckpoint {
			return usageError{errors.New("--summary is of all checkpoints: leave out the id")}
		}
		l, err := c.Checkpoints(ctx, args[0])
		if err != nil {
			return err
		}
		if id != weir.NoCheckpoint {
			return a.showCheckpoint(l, args[0], id)
		}
		if summary {
			return a.showSummary(l)
		}
		if a.json() {
			for _, info := range l.Recent {
				if err := printJSON(a.streams.Out, checkpointJSONOf(info)); err != nil {
					return err
				}
			}
			return nil
		}
		older := 0
		if !all && len(l.Recent) > listed {
			older, l.Recent = len(l.Recent)-listed, l.Recent[:listed]
		}
		printCheckpoints(a.streams.Out, l, subtasks)
		if older > 0 {
			fmt.Fprintf(a.streams.Out, "%d older ones: --all\n", older)
		}
		return nil
	})
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "show all that are remembered; -o json always does")
	f.BoolVar(&subtasks, "subtasks", false, "show every subtask's share")
	f.BoolVar(&summary, "summary", false, "show counts, the newest of each sort, and quantiles over the completed ones")
	return cmd
}

func jobAndPerhapsID(_ *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usageError{fmt.Errorf("%d arguments, want the id or name of a job, and the id of a checkpoint or none", len(args))}
	}
	return nil
}

// optionalID is the checkpoint of the second argument, NoCheckpoint without one.
func optionalID(args []string) (weir.CheckpointID, error) {
	if len(args) < 2 {
		return weir.NoCheckpoint, nil
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil || n <= 0 {
		return 0, usageError{fmt.Errorf("checkpoint %q: want its number, as `weir checkpoints` lists it", args[1])}
	}
	return weir.CheckpointID(n), nil
}

// findCheckpoint finds a checkpoint by its id.
func findCheckpoint(l rpc.CheckpointList, job string, id weir.CheckpointID) (*rpc.CheckpointInfo, error) {
	for i := range l.Recent {
		if l.Recent[i].ID == id {
			return &l.Recent[i], nil
		}
	}
	return nil, &rpc.Error{
		Code: rpc.CodeNotFound, Message: fmt.Sprintf("checkpoint %d of job %q is not known", id, job),
		Hint: "the last 100 are remembered: `weir checkpoints " + job + " --all` lists them",
	}
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
