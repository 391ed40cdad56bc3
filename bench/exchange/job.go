package main

import (
	"context"
	"sync/atomic"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// job counts by key. Its source emits what a sample allows.
type job struct {
	keys    uint64
	allowed atomic.Int64 // records in all
	wake    atomic.Pointer[func()]
	counted atomic.Int64 // records in all, up to what a counter has not reported
	goal    atomic.Int64 // of counted
	reached chan struct{}
}

// report is how many records a counter counts before it says so.
const report = 256

func (j *job) define() flow.Job {
	return flow.Define("exchange", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "source", source{j}, flow.Parallelism(1))
		byKey := flow.KeyBy(in, "by-key", user.key)
		counts := flow.Process(byKey, "count", func(s *flow.Setup) flow.Processor[string, record, total] {
			c := &counter{job: j, total: flow.NewValue[total](s, "total")}
			c.add = func(t *total) { user.add(t, c.at) }
			return c
		}, flow.Parallelism(counters), flow.Borrow())
		flow.To(counts, "discard", flow.Discard[total]())
		return nil
	})
}

type source struct{ *job }

func (source) Enumerator() operator.Enumerator {
	return flow.StaticSplits(func(parallelism int) ([][][]byte, error) { return make([][][]byte, parallelism), nil })
}

func (s source) Reader() flow.Reader[record] { return &reader{s.job, newGenerator(s.keys)} }

type reader struct {
	job  *job
	made *generator
}

func (r *reader) Open(rt *flow.Runtime) error {
	wake := rt.Wake
	r.job.wake.Store(&wake)
	return nil
}

func (r *reader) AddSplits([][]byte) error    { return nil }
func (r *reader) Snapshot() ([][]byte, error) { return nil, nil }

func (r *reader) Poll(emit func(int64, record) bool) (operator.SourceStatus, error) {
	for allowed := r.job.allowed.Load(); r.made.at < allowed; {
		key, at := r.made.next()
		if !emit(at, record{key, body}) {
			return operator.SourceMore, nil
		}
	}
	return operator.SourceEmpty, nil
}

type counter struct {
	job   *job
	total *flow.Value[total]
	add   func(*total)
	at    int64
	n     int64
}

func (c *counter) Process(ctx *flow.Context[string], _ record, _ *flow.Out[total]) error {
	c.at = ctx.Timestamp()
	c.total.Update(c.add)
	if c.n++; c.n%report == 0 {
		c.job.report()
	}
	return nil
}

func (j *job) report() {
	if n := j.counted.Add(report); n >= j.goal.Load() && n-report < j.goal.Load() {
		j.reached <- struct{}{}
	}
}

// start runs the job on a cluster in this process and returns what samples it.
func (j *job) start() func(records int) pairs.Sample {
	ctx := context.Background()
	j.reached = make(chan struct{}, 1)
	c, err := minicluster.New(minicluster.Options{Jobs: []flow.Job{j.define()}})
	must(err)
	must(c.Start(ctx))
	reply, err := c.Gateway().Submit(ctx, rpc.SubmitRequest{Entrypoint: "exchange", Parallelism: counters})
	must(err)
	_, err = c.Await(ctx, reply.Job, func(d rpc.JobDetail) bool { return d.Status == rpc.JobRunning && j.wake.Load() != nil })
	must(err)
	j.run(warmUp(j.keys))
	return func(records int) pairs.Sample {
		return pairs.CPU(float64(records), func() { j.run(records) })
	}
}

// run lets that many more records through. What the counters have not reported at
// the end, few records, is part of the next call's.
func (j *job) run(records int) {
	allowed := j.allowed.Load() + int64(records)
	j.goal.Store(allowed - counters*report)
	j.allowed.Store(allowed)
	(*j.wake.Load())()
	<-j.reached
}
