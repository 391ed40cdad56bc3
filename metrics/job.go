package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirflow/weir"
)

// Job is the metrics of one job in the JobManager. Its methods may be called from
// any goroutine.
type Job struct {
	vecs   jobVecs
	labels prometheus.Labels

	mu struct {
		sync.Mutex
		closed bool // forgotten: what is reported now is dropped
	}
}

// Job returns the metrics of a job, the same for the same id until it is forgotten.
func (r *Registry) Job(id weir.JobID, name string) *Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j, ok := r.mu.live[id]; ok {
		return j
	}
	j := &Job{vecs: r.jobs, labels: prometheus.Labels{"job_id": id.String(), "job_name": labelValue(name)}}
	j.report(func() {
		j.vecs.completed.With(j.labels)
		j.vecs.undeleted.With(j.labels)
		j.vecs.inProgress.With(j.labels)
		j.vecs.restarts.With(j.labels)
	})
	r.mu.live[id] = j
	return j
}

// CheckpointFigures are those of a completed checkpoint or savepoint.
type CheckpointFigures struct {
	ID       weir.CheckpointID
	At       time.Time     // completed
	Duration time.Duration // from its trigger
	Bytes    int64         // in-flight data included
	NewBytes int64         // of these, written for it
	InFlight int64         // of these, what barriers overtook
	// Phases are how long its parts took in the JobManager's eyes.
	Phases []CheckpointPhase
}

// CheckpointPhase is a part of the time that a checkpoint took. Names are few.
type CheckpointPhase struct {
	Name string
	Took time.Duration
}

// CheckpointCompleted counts a checkpoint that became complete.
func (j *Job) CheckpointCompleted(f CheckpointFigures) {
	j.report(func() {
		j.vecs.completed.With(j.labels).Inc()
		j.vecs.duration.With(j.labels).Observe(f.Duration.Seconds())
		j.vecs.size.With(j.labels).Observe(float64(f.Bytes))
		j.vecs.newBytes.With(j.labels).Observe(float64(f.NewBytes))
		j.vecs.inFlight.With(j.labels).Observe(float64(f.InFlight))
		for _, p := range f.Phases {
			j.vecs.phases.With(prometheus.Labels{
				"job_id": j.labels["job_id"], "job_name": j.labels["job_name"], "phase": p.Name,
			}).Observe(p.Took.Seconds())
		}
		j.vecs.lastCompleted.With(j.labels).Set(float64(f.At.UnixMilli()) / 1000)
		j.vecs.lastID.With(j.labels).Set(float64(f.ID))
		j.vecs.lastDuration.With(j.labels).Set(f.Duration.Seconds())
		j.vecs.lastSize.With(j.labels).Set(float64(f.Bytes))
		j.vecs.lastNewBytes.With(j.labels).Set(float64(f.NewBytes))
	})
}

// Restored notes that tasks are started from a snapshot.
func (j *Job) Restored(at time.Time) {
	j.report(func() { j.vecs.lastRestore.With(j.labels).Set(float64(at.UnixMilli()) / 1000) })
}

// CheckpointFailed counts a checkpoint that was aborted.
func (j *Job) CheckpointFailed(reason weir.FailureReason) {
	j.report(func() {
		j.vecs.failed.With(prometheus.Labels{
			"job_id": j.labels["job_id"], "job_name": j.labels["job_name"], "reason": reason.String(),
		}).Inc()
	})
}

// CheckpointsInProgress sets the number of pending checkpoints.
func (j *Job) CheckpointsInProgress(n int) {
	j.report(func() { j.vecs.inProgress.With(j.labels).Set(float64(n)) })
}

// Undeleted sets the number of deletions that have failed so far and are tried again.
func (j *Job) Undeleted(n int) {
	j.report(func() { j.vecs.undeleted.With(j.labels).Set(float64(n)) })
}

// Restarted counts a restart after a failure.
func (j *Job) Restarted() {
	j.report(func() { j.vecs.restarts.With(j.labels).Inc() })
}

// report runs f, which touches series of this job, unless the job was forgotten.
func (j *Job) report(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.mu.closed {
		f()
	}
}

func (j *Job) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.closed = true
}

// jobVecs are the metrics that Prometheus keeps, by job: they change only with
// checkpoints and restarts.
type jobVecs struct {
	duration      *prometheus.HistogramVec
	size          *prometheus.HistogramVec
	completed     *prometheus.CounterVec
	failed        *prometheus.CounterVec
	undeleted     *prometheus.GaugeVec
	inProgress    *prometheus.GaugeVec
	lastCompleted *prometheus.GaugeVec
	restarts      *prometheus.CounterVec

	newBytes     *prometheus.HistogramVec
	inFlight     *prometheus.HistogramVec
	phases       *prometheus.HistogramVec // by phase
	lastID       *prometheus.GaugeVec
	lastDuration *prometheus.GaugeVec
	lastSize     *prometheus.GaugeVec
	lastNewBytes *prometheus.GaugeVec
	lastRestore  *prometheus.GaugeVec

	startDelay *prometheus.HistogramVec
	alignment  *prometheus.HistogramVec
	syncPart   *prometheus.HistogramVec
	asyncPart  *prometheus.HistogramVec
	stateBytes *prometheus.HistogramVec
	captured   *prometheus.HistogramVec
}

func newJobVecs() jobVecs {
	job := []string{"job_id", "job_name"}
	vertex := []string{"job_id", "job_name", "vertex"}
	seconds := prometheus.ExponentialBuckets(0.001, 2, 20) // 1 ms to 524 s
	bytes := prometheus.ExponentialBuckets(1024, 4, 16)    // 1 KiB to 1 TiB
	short := prometheus.ExponentialBuckets(0.0001, 3, 14)  // 0.1 ms to 159 s
	histogram := func(name, help string, buckets []float64, labels []string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	}
	counter := func(name, help string, labels []string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, job)
	}
	return jobVecs{
		duration:      histogram("checkpoint_duration_seconds", "Time from the trigger of a checkpoint to its link in the chain.", seconds, job),
		size:          histogram("checkpoint_size_bytes", "Size of completed checkpoints.", bytes, job),
		completed:     counter("checkpoints_completed_total", "Checkpoints completed.", job),
		failed:        counter("checkpoints_failed_total", "Checkpoints aborted, by reason.", append(job[:2:2], "reason")),
		undeleted:     gauge("checkpoint_undeleted", "Deletions of what no checkpoint needs that have failed so far and are tried again."),
		inProgress:    gauge("checkpoints_in_progress", "Checkpoints pending now."),
		lastCompleted: gauge("checkpoint_last_completed_timestamp_seconds", "When the latest checkpoint completed, since the Unix epoch."),
		restarts:      counter("job_restarts_total", "Restarts of the job after failures.", job),

		newBytes:     histogram("checkpoint_new_bytes", "Bytes that were written for completed checkpoints.", bytes, job),
		inFlight:     histogram("checkpoint_in_flight_bytes", "Data that barriers of completed checkpoints overtook.", bytes, job),
		phases:       histogram("checkpoint_phase_seconds", "Parts of the time that completed checkpoints took.", short, append(job[:2:2], "phase")),
		lastID:       gauge("checkpoint_last_completed_id", "Id of the latest completed checkpoint."),
		lastDuration: gauge("checkpoint_last_duration_seconds", "Time from trigger to link of the latest completed checkpoint."),
		lastSize:     gauge("checkpoint_last_size_bytes", "Size of the latest completed checkpoint."),
		lastNewBytes: gauge("checkpoint_last_new_bytes", "Bytes that were written for the latest completed checkpoint."),
		lastRestore:  gauge("checkpoint_last_restore_timestamp_seconds", "When tasks were last started from a snapshot, since the Unix epoch."),

		startDelay: histogram("task_checkpoint_start_delay_seconds", "Time from a checkpoint's trigger to its first barrier at a subtask.", seconds, vertex),
		alignment:  histogram("task_checkpoint_alignment_seconds", "Time from the first barrier to the last at a subtask.", seconds, vertex),
		syncPart:   histogram("task_checkpoint_sync_seconds", "Time a subtask stood still for its snapshot.", short, vertex),
		asyncPart:  histogram("task_checkpoint_async_seconds", "Time a subtask's snapshot took beside its records.", seconds, vertex),
		stateBytes: histogram("task_checkpoint_state_bytes", "Size of what a subtask acknowledged, in-flight data included.", bytes, vertex),
		captured:   histogram("task_checkpoint_in_flight_bytes", "In-flight data that a subtask captured.", bytes, vertex),
	}
}

func (v jobVecs) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		v.duration, v.size, v.completed, v.failed, v.undeleted, v.inProgress, v.lastCompleted, v.restarts,
		v.newBytes, v.inFlight, v.phases, v.lastID, v.lastDuration, v.lastSize, v.lastNewBytes, v.lastRestore,
		v.startDelay, v.alignment, v.syncPart, v.asyncPart, v.stateBytes, v.captured,
	}
}

// forget removes the job's series.
func (v jobVecs) forget(id weir.JobID) {
	match := prometheus.Labels{"job_id": id.String()}
	v.forgetVertices(id)
	for _, h := range []*prometheus.HistogramVec{v.duration, v.size, v.newBytes, v.inFlight, v.phases} {
		h.DeletePartialMatch(match)
	}
	for _, c := range []*prometheus.CounterVec{v.completed, v.failed, v.restarts} {
		c.DeletePartialMatch(match)
	}
	for _, g := range []*prometheus.GaugeVec{v.undeleted, v.inProgress, v.lastCompleted, v.lastID, v.lastDuration, v.lastSize, v.lastNewBytes, v.lastRestore} {
		g.DeletePartialMatch(match)
	}
}

// forgetVertices removes the series of the job's vertices.
func (v jobVecs) forgetVertices(id weir.JobID) {
	match := prometheus.Labels{"job_id": id.String()}
	for _, h := range []*prometheus.HistogramVec{v.startDelay, v.alignment, v.syncPart, v.asyncPart, v.stateBytes, v.captured} {
		h.DeletePartialMatch(match)
	}
}
