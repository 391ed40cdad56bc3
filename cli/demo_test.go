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

func TestTableJudgesBackPressureAlone(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &demo{app: &app{streams: Streams{Out: &out}}}
	for i := range 4 {
		ms := time.Duration(1000+100*i) * time.Millisecond
		c := checkpoint(weir.CheckpointID(i+1), ms, weir.CheckpointMetrics{QueuedBytes: 1000, DrainRate: 1000})
		d.rows = append(d.rows, demoRow{mode: &demoModes[0], n: i, info: c, guess: predict(c)}, demoRow{mode: &demoModes[1], n: i, info: c, guess: predict(c)})
	}
	d.print([]*demoMode{&demoModes[0], &demoModes[1]})
	text := out.String()
	for _, want := range []string{"1.10 s", "1.10", "3029 ms", "17 ms", "5.7 KB", "the queue explains the duration: measured ÷ predicted is 1.15 in the median of 4 (0.75 to 1.25)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "1.30 s") != 2 || strings.Count(text, "  1.30  ") != 1 {
		t.Errorf("the ratio is for rows with back pressure alone:\n%s", text)
	}
	d.rows = nil
	if s := d.verdict(&demoModes[1]); !strings.Contains(s, "nothing was predicted") {
		t.Error(s)
	}
	c := checkpoint(1, 10*time.Second, weir.CheckpointMetrics{QueuedBytes: 1000, DrainRate: 1000})
	d.rows = []demoRow{{mode: &demoModes[1], info: c, guess: predict(c)}}
	if s := d.verdict(&demoModes[1]); !strings.Contains(s, "does not explain") {
		t.Error(s)
	}
}
