package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

func checkpoint(id weir.CheckpointID, d time.Duration, subtasks ...weir.CheckpointMetrics) rpc.CheckpointInfo {
	c := rpc.CheckpointInfo{ID: id, Status: rpc.CheckpointCompleted, Duration: d, Bytes: 5837, Path: "/c/chk"}
	for _, m := range subtasks {
		c.Subtasks = append(c.Subtasks, rpc.SubtaskCheckpoint{Metrics: m})
	}
	return c
}

func TestPredictionIsOfTheSlowestSubtask(t *testing.T) {
	t.Parallel()
	p := predict(checkpoint(1, 0,
		weir.CheckpointMetrics{QueuedBytes: 900, DrainRate: 900}, weir.CheckpointMetrics{QueuedBytes: 600, DrainRate: 200},
		weir.CheckpointMetrics{QueuedBytes: 5, DrainRate: 0}, weir.CheckpointMetrics{}))
	if p.queued != 600 || p.wait != 3*time.Second {
		t.Errorf("%+v", p)
	}
	if p := predict(checkpoint(1, 0, weir.CheckpointMetrics{QueuedBytes: 7})); p.queued != 7 || p.wait != 0 {
		t.Errorf("without a rate: %+v", p)
	}
}

func TestDemoCollectsEachCompletedCheckpointOnce(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := &app{output: "json", streams: Streams{Out: &out, Err: &errs}}
	d := &demo{app: a}
	failed := rpc.CheckpointInfo{ID: 2, Status: rpc.CheckpointFailed}
	pending := rpc.CheckpointInfo{ID: 4}
	seen := 0
	for _, recent := range [][]rpc.CheckpointInfo{
		{checkpoint(1, 10*time.Millisecond)},
		{pending, checkpoint(3, 20*time.Millisecond, weir.CheckpointMetrics{QueuedBytes: 100, DrainRate: 1000}), failed, checkpoint(1, 0)},
		{checkpoint(9, 0), checkpoint(8, 0), checkpoint(7, 0), checkpoint(6, 0), checkpoint(5, 0), checkpoint(4, 0), checkpoint(3, 0)},
	} {
		seen = d.collect(&demoModes[1], rpc.CheckpointList{Recent: recent}, seen, a.progress())
	}
	var ids []int64
	for line := range strings.Lines(out.String()) {
		var row demoJSON
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Mode != "aligned-backpressure" {
			t.Fatalf("%q: %v", line, err)
		}
		if row.Checkpoint == 3 && (row.DurationMS != 20 || row.PredictedMS != 100 || row.QueuedBytes != 100 || row.Bytes != 5837) {
			t.Errorf("%+v", row)
		}
		ids = append(ids, row.Checkpoint)
	}
	if seen != demoCheckpoints || len(ids) != demoCheckpoints || ids[1] != 3 || ids[5] != 7 {
		t.Errorf("%d seen: %v", seen, ids)
	}
}
