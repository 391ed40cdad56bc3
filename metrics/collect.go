package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// taskDescs describe the metrics of attempts, which are read when scraped.
type taskDescs struct {
	recordsIn, recordsOut     *prometheus.Desc
	bytesIn, bytesOut         *prometheus.Desc
	buffers                   *prometheus.Desc
	queuedIn, queuedOut       *prometheus.Desc
	busy, backPressured, idle *prometheus.Desc
	hardBackPressured         *prometheus.Desc
	outPool, inPool           *prometheus.Desc
	timersLate                *prometheus.Desc
	opRecordsIn, opRecordsOut *prometheus.Desc
	poolInUse, poolTotal      *prometheus.Desc
}

var (
	taskLabelNames     = []string{"job_id", "job_name", "vertex", "subtask"}
	operatorLabelNames = []string{"job_id", "job_name", "vertex", "subtask", "operator"}
)

func newTaskDescs() taskDescs {
	task := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_task_"+name, help, taskLabelNames, nil)
	}
	operator := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_operator_"+name, help, operatorLabelNames, nil)
	}
	process := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_"+name, help, nil, nil)
	}
	return taskDescs{
		recordsIn:     task("records_in_total", "Records read from the subtask's inputs."),
		recordsOut:    task("records_out_total", "Records written to the subtask's outputs."),
		bytesIn:       task("bytes_in_total", "Bytes read from the subtask's inputs."),
		bytesOut:      task("bytes_out_total", "Bytes written to the subtask's outputs."),
		buffers:       task("buffers_in_use", "Network buffers that the subtask's inputs and outputs hold."),
		queuedIn:      task("queued_in_bytes", "Bytes that wait in the subtask's inputs."),
		queuedOut:     task("queued_out_bytes", "Bytes that wait in the subtask's outputs."),
		busy:          task("busy_seconds_total", "Time in which the subtask worked."),
		backPressured: task("backpressured_seconds_total", "Time in which the subtask waited for output."),
		hardBackPressured: task("hard_backpressured_seconds_total",
			"The part of backpressured_seconds_total within a record, in which the subtask heard of nothing."),
		outPool:      task("out_pool_usage_ratio", "Share of its network buffers that the fullest output uses."),
		inPool:       task("in_pool_usage_ratio", "Share of its network buffers that the fullest input uses."),
		timersLate:   task("timers_late_seconds", "How long the earliest processing-time timer has been due."),
		idle:         task("idle_seconds_total", "Time in which the subtask waited for input."),
		opRecordsIn:  operator("records_in_total", "Records that came into the operator."),
		opRecordsOut: operator("records_out_total", "Records that the operator emitted."),
		poolInUse:    process("network_buffers_in_use", "Network buffers of the process that are in use."),
		poolTotal:    process("network_buffers", "Network buffers that the process has."),
	}
}

// taskCollector reads the attempts' figures at each scrape. It describes nothing in
// advance, since users name their metrics while they run.
type taskCollector struct {
	registry *Registry
}

var _ prometheus.Collector = taskCollector{}

func (c taskCollector) Describe(chan<- *prometheus.Desc) {}

func (c taskCollector) Collect(out chan<- prometheus.Metric) {
	tasks, buffers := c.registry.snapshot()
	for _, t := range tasks {
		c.collectTask(out, t)
	}
	if buffers != nil {
		inUse, total := buffers()
		out <- gauge(c.registry.desc.poolInUse, float64(inUse))
		out <- gauge(c.registry.desc.poolTotal, float64(total))
	}
}

// snapshot copies what a scrape walks over, so that no lock is held while it does.
func (r *Registry) snapshot() ([]*Task, func() (inUse, total int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tasks := make([]*Task, 0, len(r.mu.tasks))
	for _, t := range r.mu.tasks {
		tasks = append(tasks, t)
	}
	return tasks, r.mu.buffers
}

func (c taskCollector) collectTask(out chan<- prometheus.Metric, t *Task) {
	d, f := c.registry.desc, t.read()
	labels := []string{t.labels.Job.String(), t.labels.JobName, t.labels.Vertex, strconv.Itoa(t.labels.Subtask)}
	out <- counter(d.recordsIn, float64(f.RecordsIn), labels...)
	out <- counter(d.recordsOut, float64(f.RecordsOut), labels...)
	out <- counter(d.bytesIn, float64(f.BytesIn), labels...)
	out <- counter(d.bytesOut, float64(f.BytesOut), labels...)
	out <- gauge(d.buffers, float64(f.BuffersInUse), labels...)
	out <- gauge(d.queuedIn, float64(f.QueuedIn), labels...)
	out <- gauge(d.queuedOut, float64(f.QueuedOut), labels...)
	out <- counter(d.busy, f.Busy.Seconds(), labels...)
	out <- counter(d.backPressured, f.BackPressured.Seconds(), labels...)
	out <- counter(d.hardBackPressured, f.HardBackPressured.Seconds(), labels...)
	out <- gauge(d.outPool, f.OutPoolUsage, labels...)
	out <- gauge(d.inPool, f.InPoolUsage, labels...)
	out <- gauge(d.timersLate, f.TimersLate.Seconds(), labels...)
	out <- counter(d.idle, f.Idle.Seconds(), labels...)
	for _, o := range f.Operators {
		with := append(labels[:4:4], labelValue(o.Operator))
		out <- counter(d.opRecordsIn, float64(o.RecordsIn), with...)
		out <- counter(d.opRecordsOut, float64(o.RecordsOut), with...)
	}
	for _, o := range t.userOperators() {
		collectUser(out, o, append(labels[:4:4], o.name))
	}
}

func collectUser(out chan<- prometheus.Metric, o *Operator, labels []string) {
	const help = "A metric of the job's own."
	counters, gauges := o.values()
	for name, v := range counters {
		out <- counter(prometheus.NewDesc(name, help, operatorLabelNames, nil), v, labels...)
	}
	for name, v := range gauges {
		out <- gauge(prometheus.NewDesc(name, help, operatorLabelNames, nil), v, labels...)
	}
}

func counter(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}
