package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirflow/weir"
)

// TaskLabels say whose figures they are.
type TaskLabels struct {
	Job     weir.JobID
	JobName string
	Vertex  string // the vertex's name
	Subtask int
}

// TaskFigures are what one attempt has done so far and holds now. Times add up to the
// time that it has run: rate() over them is the time per second.
type TaskFigures struct {
	RecordsIn, RecordsOut int64
	BytesIn, BytesOut     int64
	BuffersInUse          int64 // network buffers, of inputs and outputs
	QueuedIn, QueuedOut   int64 // bytes waiting in input gates and result partitions
	Busy                  time.Duration
	BackPressured         time.Duration // waited for output
	HardBackPressured     time.Duration // the part of it within a record
	OutPoolUsage          float64       // the fullest output's share of its buffers in use
	InPoolUsage           float64       // likewise of the inputs
	TimersLate            time.Duration // how long the earliest timer has been due
	Idle                  time.Duration // waited for input
	Operators             []OperatorFigures
}

// OperatorFigures are the counts of one operator of the attempt's chain.
type OperatorFigures struct {
	Operator              string
	RecordsIn, RecordsOut int64
}

// Task is the metrics of one attempt in the TaskManager. Its methods may be called
// from any goroutine.
type Task struct {
	registry *Registry
	labels   TaskLabels
	read     func() TaskFigures

	mu struct {
		sync.Mutex
		operators map[string]*Operator
	}
}

// taskKey tells subtasks apart; attempts of one subtask share it.
type taskKey struct {
	job     weir.JobID
	vertex  string
	subtask int
}

func (l TaskLabels) key() taskKey { return taskKey{l.Job, l.Vertex, l.Subtask} }

// AddTask adds an attempt in the place of an older one of the same subtask. The
// function read is called at each scrape, from any goroutine, and may be called once
// more after the attempt was removed.
func (r *Registry) AddTask(labels TaskLabels, read func() TaskFigures) *Task {
	labels.JobName, labels.Vertex = labelValue(labels.JobName), labelValue(labels.Vertex)
	t := &Task{registry: r, labels: labels, read: read}
	t.mu.operators = make(map[string]*Operator)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.tasks[labels.key()] = t
	return t
}

// Remove takes the attempt's series away, unless a newer attempt has its place. The
// histograms of the job's vertices go with the last attempt of the job in this
// process: a TaskManager is not told whether the job has ended or restarts.
func (t *Task) Remove() {
	r := t.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.tasks[t.labels.key()] != t {
		return
	}
	delete(r.mu.tasks, t.labels.key())
	for key := range r.mu.tasks {
		if key.job == t.labels.Job {
			return
		}
	}
	r.jobs.forgetVertices(t.labels.Job)
}

// ObserveCheckpoint records the timings of a snapshot that the attempt acknowledged.
func (t *Task) ObserveCheckpoint(m weir.CheckpointMetrics) {
	r := t.registry
	labels := prometheus.Labels{
		"job_id": t.labels.Job.String(), "job_name": t.labels.JobName, "vertex": t.labels.Vertex,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.tasks[t.labels.key()] != t {
		return // removed: its job may have been forgotten
	}
	r.jobs.startDelay.With(labels).Observe(m.StartDelay.Seconds())
	r.jobs.alignment.With(labels).Observe(m.AlignmentDuration.Seconds())
	r.jobs.syncPart.With(labels).Observe(m.SyncDuration.Seconds())
	r.jobs.asyncPart.With(labels).Observe(m.AsyncDuration.Seconds())
	r.jobs.stateBytes.With(labels).Observe(float64(m.StateBytes))
	r.jobs.captured.With(labels).Observe(float64(m.PersistedBytes))
}

// Operator returns the user's metrics of an operator of the attempt, the same for the
// same name.
func (t *Task) Operator(name string) *Operator {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.mu.operators[name]
	if !ok {
		o = newOperator(name)
		t.mu.operators[name] = o
	}
	return o
}

// userOperators returns the operators that have user metrics.
func (t *Task) userOperators() []*Operator {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*Operator, 0, len(t.mu.operators))
	for _, o := range t.mu.operators {
		list = append(list, o)
	}
	return list
}
