package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/metrics"
)

var (
	jobA = weir.JobID{1}
	jobB = weir.JobID{2}
)

// scrape returns the lines of our own metrics, without comments.
func scrape(t testing.TB, r *metrics.Registry) string {
	t.Helper()
	rec := httptest.NewRecorder()
	r.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("scrape: %d\n%s", rec.Code, rec.Body)
	}
	var ours []string
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, "weir_") {
			ours = append(ours, line)
		}
	}
	return strings.Join(ours, "")
}

func want(t testing.TB, scraped string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(scraped, line+"\n") {
			t.Errorf("no line %q in\n%s", line, scraped)
		}
	}
}

// everything reports something to every metric of a job.
func everything(r *metrics.Registry, id weir.JobID, name string) *metrics.Task {
	job := r.Job(id, name)
	job.CheckpointsInProgress(1)
	job.CheckpointCompleted(metrics.CheckpointFigures{
		ID: 7, At: time.UnixMilli(1500), Duration: 250 * time.Millisecond, Bytes: 5700, NewBytes: 1000, InFlight: 700,
		Phases: []metrics.CheckpointPhase{{Name: "link", Took: time.Second}},
	})
	job.Restored(time.UnixMilli(2500))
	job.CheckpointFailed(weir.CheckpointExpired)
	job.Restarted()
	task := r.AddTask(metrics.TaskLabels{Job: id, JobName: name, Vertex: "count", Subtask: 3}, func() metrics.TaskFigures {
		return metrics.TaskFigures{
			RecordsIn: 10, RecordsOut: 11, BytesIn: 12, BytesOut: 13, BuffersInUse: 14, QueuedIn: 15, QueuedOut: 16,
			Busy: time.Second, BackPressured: 2 * time.Second, Idle: 3 * time.Second,
			HardBackPressured: time.Second / 2, OutPoolUsage: 0.75, InPoolUsage: 0.25, TimersLate: 4 * time.Second,
			Operators: []metrics.OperatorFigures{{Operator: "map", RecordsIn: 17, RecordsOut: 18}},
		}
	})
	task.ObserveCheckpoint(weir.CheckpointMetrics{
		StartDelay: time.Second, AlignmentDuration: 2 * time.Second, SyncDuration: time.Millisecond, AsyncDuration: time.Minute,
		StateBytes: 5000, PersistedBytes: 3000,
	})
	task.Operator("map").Counter("late records").Add(5)
	task.Operator("map").Gauge("lag").Set(1.5)
	return task
}

func TestEveryMetricHasItsNameUnitAndLabels(t *testing.T) {
	t.Parallel()
	r := metrics.New(metrics.Build{Role: "all", Version: "v1", CodeID: "c0de"})
	r.BuffersFrom(func() (inUse, total int) { return 7, 2048 })
	everything(r, jobA, "demo")
	job := fmt.Sprintf(`job_id="%s",job_name="demo"`, jobA)
	task := job + `,subtask="3",vertex="count"`
	op := job + `,operator="map",subtask="3",vertex="count"`
	want(t, scrape(t, r),
		`weir_build_info{code_id="c0de",role="all",version="v1"} 1`,
		`weir_checkpoints_completed_total{`+job+`} 1`,
		`weir_checkpoints_failed_total{`+job+`,reason="CHECKPOINT_EXPIRED"} 1`,
		`weir_checkpoints_in_progress{`+job+`} 1`,
		`weir_checkpoint_duration_seconds_sum{`+job+`} 0.25`,
		`weir_checkpoint_size_bytes_sum{`+job+`} 5700`,
		`weir_checkpoint_last_completed_timestamp_seconds{`+job+`} 1.5`,
		`weir_checkpoint_new_bytes_sum{`+job+`} 1000`,
		`weir_checkpoint_in_flight_bytes_sum{`+job+`} 700`,
		`weir_checkpoint_phase_seconds_sum{`+job+`,phase="link"} 1`,
		`weir_checkpoint_last_completed_id{`+job+`} 7`,
		`weir_checkpoint_last_duration_seconds{`+job+`} 0.25`,
		`weir_checkpoint_last_size_bytes{`+job+`} 5700`,
		`weir_checkpoint_last_new_bytes{`+job+`} 1000`,
		`weir_checkpoint_last_restore_timestamp_seconds{`+job+`} 2.5`,
		`weir_task_checkpoint_state_bytes_sum{`+job+`,vertex="count"} 5000`,
		`weir_task_checkpoint_in_flight_bytes_sum{`+job+`,vertex="count"} 3000`,
		`weir_job_restarts_total{`+job+`} 1`,
		`weir_task_checkpoint_start_delay_seconds_sum{`+job+`,vertex="count"} 1`,
		`weir_task_checkpoint_alignment_seconds_sum{`+job+`,vertex="count"} 2`,
		`weir_task_checkpoint_sync_seconds_sum{`+job+`,vertex="count"} 0.001`,
		`weir_task_checkpoint_async_seconds_sum{`+job+`,vertex="count"} 60`,
		`weir_task_records_in_total{`+task+`} 10`,
		`weir_task_records_out_total{`+task+`} 11`,
		`weir_task_bytes_in_total{`+task+`} 12`,
		`weir_task_bytes_out_total{`+task+`} 13`,
		`weir_task_buffers_in_use{`+task+`} 14`,
		`weir_task_queued_in_bytes{`+task+`} 15`,
		`weir_task_queued_out_bytes{`+task+`} 16`,
		`weir_task_busy_seconds_total{`+task+`} 1`,
		`weir_task_backpressured_seconds_total{`+task+`} 2`,
		`weir_task_idle_seconds_total{`+task+`} 3`,
		`weir_task_hard_backpressured_seconds_total{`+task+`} 0.5`,
		`weir_task_out_pool_usage_ratio{`+task+`} 0.75`,
		`weir_task_in_pool_usage_ratio{`+task+`} 0.25`,
		`weir_task_timers_late_seconds{`+task+`} 4`,
		`weir_operator_records_in_total{`+op+`} 17`,
		`weir_operator_records_out_total{`+op+`} 18`,
		`weir_user_late_records_total{`+op+`} 5`,
		`weir_user_lag{`+op+`} 1.5`,
		`weir_network_buffers_in_use 7`,
		`weir_network_buffers 2048`,
	)
}

func TestSeriesGoWhenTheJobGoesAndStayGone(t *testing.T) {
	t.Parallel()
	r := metrics.New(metrics.Build{})
	task := everything(r, jobA, "gone")
	everything(r, jobB, "stays")
	job := r.Job(jobA, "gone")
	before := strings.Count(scrape(t, r), jobB.String())

	r.Forget(jobA)
	job.CheckpointCompleted(metrics.CheckpointFigures{Phases: []metrics.CheckpointPhase{{}}})
	job.Restored(time.Time{})
	job.CheckpointFailed(weir.TaskFailure)
	job.CheckpointsInProgress(0)
	job.Restarted()
	task.ObserveCheckpoint(weir.CheckpointMetrics{})
	task.Operator("map").Counter("late records").Add(1)
	task.Remove()

	scraped := scrape(t, r)
	if strings.Contains(scraped, jobA.String()) || strings.Contains(scraped, "gone") {
		t.Errorf("series of a job that has gone:\n%s", scraped)
	}
	if after := strings.Count(scraped, jobB.String()); after != before {
		t.Errorf("%d series of the other job, had %d", after, before)
	}
}

func TestHistogramsOfVerticesGoWithTheLastAttemptOfTheJob(t *testing.T) {
	t.Parallel()
	r := metrics.New(metrics.Build{})
	add := func(job weir.JobID, subtask int) *metrics.Task {
		task := r.AddTask(metrics.TaskLabels{Job: job, Vertex: "v", Subtask: subtask}, func() metrics.TaskFigures { return metrics.TaskFigures{} })
		task.ObserveCheckpoint(weir.CheckpointMetrics{})
		return task
	}
	first, second := add(jobA, 0), add(jobA, 1)
	add(jobB, 0)
	shown := func(job weir.JobID) bool {
		return strings.Contains(scrape(t, r), `weir_task_checkpoint_alignment_seconds_count{job_id="`+job.String())
	}
	if first.Remove(); !shown(jobA) {
		t.Error("gone while a task of the job runs")
	}
	if second.Remove(); shown(jobA) || !shown(jobB) {
		t.Error("want those of the other job alone")
	}
}

func TestNewAttemptTakesThePlaceOfTheOlder(t *testing.T) {
	t.Parallel()
	r := metrics.New(metrics.Build{})
	labels := metrics.TaskLabels{Job: jobA, JobName: "j", Vertex: "v"}
	figures := func(n int64) func() metrics.TaskFigures {
		return func() metrics.TaskFigures { return metrics.TaskFigures{RecordsIn: n} }
	}
	first := r.AddTask(labels, figures(1))
	second := r.AddTask(labels, figures(2))
	first.Remove()
	if s := scrape(t, r); !strings.Contains(s, `vertex="v"} 2`) || strings.Count(s, "weir_task_records_in_total{") != 1 {
		t.Errorf("want the second attempt's series alone:\n%s", s)
	}
	second.Remove()
	if s := scrape(t, r); strings.Contains(s, "weir_task_records_in_total{") {
		t.Errorf("series of a removed attempt:\n%s", s)
	}
}

func TestNoNameOfAUserBreaksAScrape(t *testing.T) {
	t.Parallel()
	r := metrics.New(metrics.Build{})
	r.Job(jobB, "job\xff\"\n").Restarted()
	task := r.AddTask(metrics.TaskLabels{Job: jobA, JobName: "job\xff\"\n", Vertex: "\xfe"}, func() metrics.TaskFigures {
		return metrics.TaskFigures{Operators: []metrics.OperatorFigures{{Operator: "a\xff"}}}
	})
	task.ObserveCheckpoint(weir.CheckpointMetrics{})
	op := task.Operator("Ünïcode\xff")
	for _, name := range []string{"x", "x_total", "x total", "x-total", "", "9", "a:b", "日本", strings.Repeat("n", 1000)} {
		op.Counter(name).Add(1)
		op.Gauge(name).Set(1)
	}
	for i := range 2 * metrics.MaxUserMetrics {
		op.Counter(fmt.Sprint("made of data ", i)).Add(1)
	}
	s := scrape(t, r)
	want(t, strings.ReplaceAll(s, "{", " \n"), "weir_user_x_total ", "weir_user_x ", "weir_user_x_total_value ")
	if n := strings.Count(s, "weir_user_"); n > metrics.MaxUserMetrics {
		t.Errorf("%d user series, want at most %d", n, metrics.MaxUserMetrics)
	}
}

func BenchmarkCounterAdd(b *testing.B) {
	b.ReportAllocs()
	r := metrics.New(metrics.Build{})
	c := r.AddTask(metrics.TaskLabels{}, nil).Operator("op").Counter("c")
	for b.Loop() {
		c.Add(1)
	}
}

// documented finds the names of metrics in docs/metrics.md.
var documented = regexp.MustCompile("`(weir_[a-z_]+)`")

func TestTheDocumentedMetricsAreTheOnesThereAre(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	inDocs := make(map[string]bool)
	for _, m := range documented.FindAllStringSubmatch(string(page), -1) {
		inDocs[m[1]] = true
	}
	r := metrics.New(metrics.Build{})
	r.BuffersFrom(func() (inUse, total int) { return 0, 0 })
	everything(r, jobA, "demo")
	families, err := r.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "weir_") || strings.HasPrefix(name, "weir_user_") {
			continue
		}
		if !inDocs[name] {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
		delete(inDocs, name)
	}
	for name := range inDocs {
		t.Errorf("docs/metrics.md names %s, which does not exist", name)
	}
}
