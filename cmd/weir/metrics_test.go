package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// scrape returns what a daemon serves on /metrics.
func scrape(t *testing.T, address string) string {
	t.Helper()
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, r.Status, err)
	}
	return string(b)
}

// series are the lines of a metric that carry a label.
func series(text, name, label string) (found []string) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') && strings.Contains(line, label) {
			found = append(found, line)
		}
	}
	return found
}

// The series that issue, dashboards and docs/metrics.md name.
var (
	jobSeries = []string{
		"weir_checkpoint_duration_seconds_bucket", "weir_checkpoint_duration_seconds_count", "weir_checkpoint_size_bytes_bucket",
		"weir_checkpoints_completed_total", "weir_checkpoints_in_progress", "weir_job_restarts_total",
	}
	taskSeries = []string{
		"weir_task_records_in_total", "weir_task_records_out_total", "weir_task_bytes_in_total", "weir_task_bytes_out_total",
		"weir_task_busy_seconds_total", "weir_task_backpressured_seconds_total", "weir_task_idle_seconds_total", "weir_task_buffers_in_use",
		"weir_task_checkpoint_alignment_seconds_count", "weir_task_checkpoint_start_delay_seconds_count",
		"weir_user_completed_checkpoints_total",
	}
	processSeries = []string{"weir_build_info", "go_goroutines", "process_resident_memory_bytes"}
)

func TestMetricsComeAndGoWithTheJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 2)
	job := c.submit(rpc.SubmitRequest{})
	c.await(job, "it runs", client.Running)
	c.awaitCheckpoint(job, c.awaitCheckpoint(job, 1))
	label := `job_id="` + job + `"`
	addresses := map[string][]string{c.jm.ready.Metrics: jobSeries}
	for _, tm := range c.tms {
		addresses[tm.ready.Metrics] = taskSeries
	}
	for address, names := range addresses {
		text := scrape(t, address)
		for _, name := range names {
			if len(series(text, name, label)) == 0 {
				t.Errorf("%s: no series of %s with %s", address, name, label)
			}
		}
		for _, name := range processSeries {
			if len(series(text, name, "")) == 0 {
				t.Errorf("%s: no series of %s", address, name)
			}
		}
	}
	c.checkFigures(job, label)
	c.json("cancel", job)
	for address := range addresses {
		awaitGone(t, address, label)
	}
}

// checkFigures compares some figures with what the job must have done.
func (c *cluster) checkFigures(job, label string) {
	c.t.Helper()
	text := scrape(c.t, c.jm.ready.Metrics)
	if s := series(text, "weir_checkpoints_completed_total", label); !slices.ContainsFunc(s, func(line string) bool { return !strings.HasSuffix(line, " 0\n") }) {
		c.t.Errorf("completed checkpoints: %q", s)
	}
	var out []string
	for _, tm := range c.tms {
		out = append(out, series(scrape(c.t, tm.ready.Metrics), "weir_task_records_out_total", `vertex="datagen"`)...)
	}
	if len(out) != 2 || strings.HasSuffix(out[0], " 0\n") || strings.HasSuffix(out[1], " 0\n") {
		c.t.Errorf("records out of the sources: %q", out)
	}
}

// awaitGone waits until no series carries the label.
func awaitGone(t *testing.T, address, label string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		text := scrape(t, address)
		i := strings.Index(text, label)
		if i < 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			line := strings.LastIndexByte(text[:i], '\n') + 1
			t.Errorf("%s: the job has ended and there is still %s…", address, text[line:i])
			return
		}
	}
}
