package metrics

import (
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirflow/weir"
)

// namespace begins every name that is ours.
const namespace = "weir"

// Build says what runs; it is shown as the labels of weir_build_info.
type Build struct {
	Role    string // "jobmanager", "taskmanager" or "all"
	Version string
	CodeID  string
}

// Registry is the metrics of one process. Its methods may be called from any
// goroutine.
type Registry struct {
	prom *prometheus.Registry
	jobs jobVecs
	desc taskDescs

	mu struct {
		sync.Mutex
		live    map[weir.JobID]*Job       // jobs that report
		tasks   map[taskKey]*Task         // the latest attempt of each subtask
		buffers func() (inUse, total int) // of the process's network buffer pool, or nil
	}
}

// New returns the registry of a process, with the metrics of the Go runtime and of
// the process in it.
func New(b Build) *Registry {
	r := &Registry{prom: prometheus.NewRegistry(), jobs: newJobVecs(), desc: newTaskDescs()}
	r.mu.live = make(map[weir.JobID]*Job)
	r.mu.tasks = make(map[taskKey]*Task)
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "What runs; always 1.",
		ConstLabels: prometheus.Labels{"role": b.Role, "version": b.Version, "code_id": b.CodeID},
	})
	info.Set(1)
	r.prom.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		info,
		taskCollector{r},
	)
	r.prom.MustRegister(r.jobs.collectors()...)
	return r
}

// Handler serves the metrics as Prometheus reads them, usually at /metrics.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		// One series that cannot be shown must not hide the others.
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// Gatherer is the registry for those who read metrics inside the process, as tests do.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.prom }

// BuffersFrom names the function that reads the process's network buffer pool. It is
// called at each scrape, from any goroutine.
func (r *Registry) BuffersFrom(read func() (inUse, total int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.buffers = read
}

// labelValue is s as Prometheus takes it: names come from users.
func labelValue(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Forget removes every series of a job, in both roles. Handles that are still held
// go on counting, unseen.
func (r *Registry) Forget(id weir.JobID) {
	r.mu.Lock()
	job := r.mu.live[id]
	delete(r.mu.live, id)
	for key := range r.mu.tasks {
		if key.job == id {
			delete(r.mu.tasks, key)
		}
	}
	r.mu.Unlock()
	if job != nil {
		job.close()
	}
	r.jobs.forget(id)
}
