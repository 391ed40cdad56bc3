package main

import (
	"context"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/bench/quota"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// job counts by key. Its source emits what a sample allows.
type job struct {
	*quota.Quota
	keys   uint64
	borrow []flow.Option // that the counting operator keeps nothing of a record
}

func (j *job) define() flow.Job {
	return flow.Define("exchange", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "source", source{j}, flow.Parallelism(1))
		byKey := flow.KeyBy(in, "by-key", user.key)
		counts := flow.Process(byKey, "count", func(s *flow.Setup) flow.Processor[string, record, total] {
			c := &counter{job: j, total: flow.NewValue[total](s, "total")}
			c.add = func(t *total) { user.add(t, c.at) }
			return c
		}, append(j.borrow, flow.Parallelism(counters))...)
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
	r.job.SetWake(rt.Wake)
	return nil
}

func (r *reader) AddSplits([][]byte) error    { return nil }
func (r *reader) Snapshot() ([][]byte, error) { return nil, nil }

func (r *reader) Poll(emit func(int64, record) bool) (operator.SourceStatus, error) {
	for allowed := r.job.Allowed(); r.made.at < allowed; {
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
	if c.n++; c.n%quota.Report == 0 {
		c.job.Counted()
	}
	return nil
}

// start runs the job on a cluster in this process and returns what samples it.
func (j *job) start() func(records int) pairs.Sample {
	ctx := context.Background()
	j.Quota = quota.New(counters)
	c, err := minicluster.New(minicluster.Options{Jobs: []flow.Job{j.define()}})
	must(err)
	must(c.Start(ctx))
	reply, err := c.Gateway().Submit(ctx, rpc.SubmitRequest{Entrypoint: "exchange", Parallelism: counters})
	must(err)
	_, err = c.Await(ctx, reply.Job, func(d rpc.JobDetail) bool { return d.Status == rpc.JobRunning && j.Opened() })
	must(err)
	j.Run(warmUp(j.keys))
	return func(records int) pairs.Sample {
		return pairs.CPU(float64(records), func() { j.Run(records) })
	}
}
