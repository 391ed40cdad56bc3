package cli

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cli/explain"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
)

// TestCheckpointsShowWhatWasInFlight, of the checkpoint and of its subtasks.
func TestCheckpointsShowWhatWasInFlight(t *testing.T) {
	t.Parallel()
	subtask := func(n int32, m weir.CheckpointMetrics) rpc.SubtaskCheckpoint {
		m.SyncDuration, m.StateBytes = time.Millisecond, 100
		return rpc.SubtaskCheckpoint{Vertex: "count", Attempt: weir.AttemptID{Subtask: n}, Acknowledged: 20 * time.Millisecond, Metrics: m}
	}
	info := rpc.CheckpointInfo{
		ID: 3, Status: rpc.CheckpointCompleted, Duration: 25 * time.Millisecond, Bytes: 700_200, PersistedBytes: 700_000, Unaligned: true, Path: "/c/chk-3",
		Subtasks: []rpc.SubtaskCheckpoint{
			subtask(0, weir.CheckpointMetrics{Unaligned: true, PersistedBytes: 700_000}), subtask(1, weir.CheckpointMetrics{}),
		},
	}
	aligned := rpc.CheckpointInfo{ID: 2, Status: rpc.CheckpointCompleted, Duration: time.Second, Bytes: 200, Path: "/c/chk-2"}
	var out bytes.Buffer
	printCheckpoints(&out, rpc.CheckpointList{Completed: 2, Recent: []rpc.CheckpointInfo{info, aligned}}, true)
	want := `completed 2  failed 0  in progress 0
ID  STATUS      TRIGGERED                 DURATION       SIZE  IN FLIGHT  QUEUED  PREDICTED
 3  COMPLETED   -                          25.0 ms  683.8 KiB  683.6 KiB     0 B         0s  /c/chk-3
      count[0]  acknowledged +20.0 ms  sync 1.0 ms      100 B  683.6 KiB     0 B             start delay 0s, alignment 0s, async 0s
      count[1]  acknowledged +20.0 ms  sync 1.0 ms      100 B          -     0 B             start delay 0s, alignment 0s, async 0s
 2  COMPLETED   -                           1.00 s      200 B          -     0 B         0s  /c/chk-2
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var line bytes.Buffer
	if err := printJSON(&line, checkpointJSONOf(info)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"persisted_bytes":700000`, `"type":"UNALIGNED_CHECKPOINT"`, `"unaligned":true`, `"unaligned":false`} {
		if !strings.Contains(line.String(), want) {
			t.Errorf("no %s in %s", want, line.String())
		}
	}
}

// slowCheckpoint is one with back pressure, of two sources and a counter.
func slowCheckpoint() (rpc.CheckpointInfo, jobgraph.JobGraph) {
	const ms = time.Millisecond
	subtask := func(vertex, n int32, ack time.Duration, m weir.CheckpointMetrics) rpc.SubtaskCheckpoint {
		return rpc.SubtaskCheckpoint{
			Vertex: [...]string{"source", "count"}[vertex], Attempt: weir.AttemptID{Vertex: vertex, Subtask: n}, Acknowledged: ack, Metrics: m,
		}
	}
	c := rpc.CheckpointInfo{
		ID: 7, Status: rpc.CheckpointCompleted, Duration: 3900 * ms, Bytes: 4200, NewBytes: 1100, Path: "/c/chk-7", Tasks: 3, Acknowledged: 3,
		Steps: []rpc.StepTime{
			{Step: rpc.StepRequested, At: -3 * ms}, {Step: rpc.StepDecided, At: -1 * ms}, {Step: rpc.StepPlanned, At: -1 * ms}, {Step: rpc.StepTriggered},
			{Step: rpc.StepCoordinated, At: ms}, {Step: rpc.StepTasksTriggered, At: ms}, {Step: rpc.StepFirstAck, At: 3 * ms},
			{Step: rpc.StepLastAck, At: 3895 * ms}, {Step: rpc.StepWritten, At: 3897 * ms}, {Step: rpc.StepLinkBegan, At: 3897 * ms}, {Step: rpc.StepLinked, At: 3900 * ms},
		},
		Vertices: []rpc.VertexCheckpoint{
			{Vertex: 0, Name: "source", Tasks: 2, Acknowledged: 2, Slowest: 1, LastAck: 4 * ms, StartDelay: 2 * ms},
			{Vertex: 1, Name: "count", Tasks: 1, Acknowledged: 1, LastAck: 3895 * ms, StartDelay: 3700 * ms, Alignment: 180 * ms, Sync: ms, Async: 10 * ms, StateBytes: 2000},
		},
		Subtasks: []rpc.SubtaskCheckpoint{
			subtask(0, 0, 3*ms, weir.CheckpointMetrics{StartDelay: 2 * ms}), subtask(0, 1, 4*ms, weir.CheckpointMetrics{StartDelay: 2 * ms}),
			subtask(1, 0, 3895*ms, weir.CheckpointMetrics{
				StartDelay: 3700 * ms, AlignmentDuration: 180 * ms, SyncDuration: ms, AsyncDuration: 10 * ms, StateBytes: 2000, QueuedBytes: 700_000,
				LastBarrier: weir.LastBarrier{Came: true, Channel: 1, Queued: 400_000},
			}),
		},
	}
	return c, jobgraph.JobGraph{
		Vertices: []jobgraph.Vertex{{Name: "source", Source: true, Parallelism: 2}, {Index: 1, Name: "count", Parallelism: 1, Inputs: []int{0}}},
		Edges:    []jobgraph.Edge{{To: 1, Partitioning: jobgraph.Hash}},
	}
}

func TestExplanationFitsAScreen(t *testing.T) {
	t.Parallel()
	c, g := slowCheckpoint()
	e := explain.Checkpoint(&c, &g)
	var out bytes.Buffer
	printExplanation(&out, "orders", &c, &e)
	want := `CHECKPOINT 7 of orders  COMPLETED  triggered -  3.90 s  3 of 3 tasks  4.1 KiB

    TOOK  SHARE  WAITED FOR
  2.0 ms         its turn: other checkpoints, min-pause (before the trigger)
  1.0 ms         an id from the registry (before the trigger)
  1.0 ms    0 %  operator coordinators to give their state
  1.0 ms    0 %  source[1] to take its trigger, between two records
  3.70 s   95 %  the first barrier at count[0], from source[1] (input 0, channel 1) behind 390.6 KiB
180.0 ms    5 %  the last barrier at count[0], alignment, from source[1] (input 0, channel 1) behind 390.6 KiB
  1.0 ms    0 %  count[0] to take its snapshot, standing still (sync)
 10.0 ms    0 %  count[0] to write 2.0 KiB (async)
  4.0 ms    0 %  messages between count[0] and the JobManager
  2.0 ms    0 %  the metadata to be written
  3.0 ms    0 %  the registry to take its link
  3.90 s  100 %  in all

Barriers waited behind data on the way to count[0]: let them overtake with execution.checkpointing.unaligned.enabled=true (and execution.checkpointing.aligned-checkpoint-timeout), or give the slow operator that ` + "`weir backpressure`" + ` names more parallelism.
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	j := explanationJSONOf(&c, &e)
	sum := 0.0
	for _, w := range j.Waits {
		sum += w.TookMS
	}
	if math.Abs(sum-j.DurationMS) > 1e-6 || j.Waits[2].From != "source[1]" || j.Waits[2].Queued != 400_000 || len(j.Before) != 2 {
		t.Errorf("%+v", j)
	}
	// A chain of any length fits.
	for range 100 {
		e.Waits = append(e.Waits, explain.Wait{Kind: explain.Queue, Took: 10 * time.Microsecond})
	}
	out.Reset()
	printExplanation(&out, "orders", &c, &e)
	if n := strings.Count(out.String(), "\n"); n > 24 || !strings.Contains(out.String(), " shorter waits (-o json)") {
		t.Errorf("%d lines\n%s", n, out.String())
	}
}

func TestOneCheckpointIsShownWithItsSubtasks(t *testing.T) {
	t.Parallel()
	c, _ := slowCheckpoint()
	var out bytes.Buffer
	printCheckpoint(&out, &c)
	want := `CHECKPOINT 7  COMPLETED  triggered -  3.90 s  3 of 3 tasks  4.1 KiB, 1.1 KiB of it new
path   /c/chk-7
steps  requested -3.0 ms, decided -1.0 ms, planned -1.0 ms, triggered +0s, coordinators snapshotted +1.0 ms, tasks triggered +1.0 ms, first acknowledgement +3.0 ms, last acknowledgement +3.90 s, metadata written +3.90 s, link began +3.90 s, linked +3.90 s
                ACKNOWLEDGED  START DELAY  ALIGNMENT    SYNC    ASYNC     SIZE  ALIGNED  IN FLIGHT     QUEUED  LAST BARRIER
source  2 of 2        4.0 ms       2.0 ms         0s      0s       0s      0 B      0 B        0 B
  [0]                 3.0 ms       2.0 ms         0s      0s       0s      0 B      0 B          -        0 B  -
  [1]                 4.0 ms       2.0 ms         0s      0s       0s      0 B      0 B          -        0 B  -
count  1 of 1         3.90 s       3.70 s   180.0 ms  1.0 ms  10.0 ms  2.0 KiB      0 B        0 B
  [0]                 3.90 s       3.70 s   180.0 ms  1.0 ms  10.0 ms  2.0 KiB      0 B          -  683.6 KiB  input 0 channel 1, behind 390.6 KiB
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	c.Status, c.Reason, c.Vertices = rpc.CheckpointFailed, weir.CheckpointExpired, nil
	c.Late = []rpc.SubtaskCheckpoint{c.Subtasks[2]}
	c.Subtasks[2].Acknowledged = 0
	out.Reset()
	printCheckpoint(&out, &c)
	for _, want := range []string{"failed: CHECKPOINT_EXPIRED", "\ncount\n", "behind 390.6 KiB  late\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestSummaryOfCheckpoints(t *testing.T) {
	t.Parallel()
	c, _ := slowCheckpoint()
	l := rpc.CheckpointList{
		Completed: 3, Failed: 1, Latest: rpc.CheckpointLatest{Completed: &c},
		Summary: rpc.CheckpointSummary{Duration: rpc.Quantiles{Count: 3, Min: 0.001, Average: 0.002, P50: 0.002, P90: 1, P99: 1, P999: 1, Max: 1}},
	}
	var out bytes.Buffer
	if err := (&app{streams: Streams{Out: &out}}).showSummary(l); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"completed 3  failed 1  in progress 0  total 4  restores 0\nlatest completed  7 at", "P99.9",
		"duration     1.0 ms   2.0 ms  2.0 ms  1.00 s  1.00 s  1.00 s  1.00 s\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestWrongCallsAboutCheckpointsAreUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"checkpoints"}, {"checkpoints", "a", "x"}, {"checkpoints", "a", "0"}, {"checkpoints", "a", "1", "2"}, {"checkpoints", "a", "1", "--summary"},
		{"checkpoint", "explain"}, {"checkpoint", "explain", "a", "-1x"},
	} {
		if code := newCommand().run(t.Context(), args...); code != ExitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
	l := rpc.CheckpointList{Recent: []rpc.CheckpointInfo{{ID: 1}}}
	if _, err := toExplain(l, "a", 2); rpc.CodeOf(err) != rpc.CodeNotFound {
		t.Error(err)
	}
	if _, err := toExplain(l, "a", weir.NoCheckpoint); rpc.CodeOf(err) != rpc.CodeNotFound {
		t.Error(err)
	}
}
