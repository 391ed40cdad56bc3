package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
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
