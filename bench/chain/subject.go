package main

import (
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// pollSize is how many records a task asks a source for at once.
const pollSize = operator.BatchSize

var job = flow.Define("chain", func(g *flow.Graph, _ struct{}) error {
	in := flow.From(g, "source", source{})
	scaled := flow.Map(in, "map", scale)
	kept := flow.Filter(scaled, "filter", keep)
	flow.To(kept, "sink", flow.SinkFunc[record](add))
	return nil
})

// source is an endless source of one subtask.
type source struct{}

func (source) Enumerator() operator.Enumerator {
	return flow.StaticSplits(func(parallelism int) ([][][]byte, error) { return make([][][]byte, parallelism), nil })
}
func (source) Reader() flow.Reader[record] { return &reader{make: funcs.source} }

type reader struct {
	make func(int64) record
	next int64
}

func (r *reader) AddSplits([][]byte) error    { return nil }
func (r *reader) Snapshot() ([][]byte, error) { return nil, nil }
func (r *reader) Poll(emit func(int64, record) bool) (operator.SourceStatus, error) {
	for more := true; more; r.next++ {
		more = emit(r.next, r.make(r.next))
	}
	return operator.SourceMore, nil
}

// subject is the chain, opened.
type subject struct{ chain operator.Chain }

func openSubject() *subject {
	p, err := job.Build(nil)
	must(err)
	g, err := jobgraph.Compile(p.Logical(), jobgraph.Options{})
	must(err)
	c, err := p.NewChain(&g.Vertices[0], g)
	must(err)
	must(c.Open(&operator.Env{
		JobName: g.Name, Vertex: g.Vertices[0].Name, Parallelism: 1, MaxParallelism: g.Vertices[0].MaxParallelism,
		Suspend:  new(atomic.Bool),
		Restored: func(weir.OperatorID) ([][]byte, bool) { return nil, false },
		Splits:   func(weir.OperatorID) [][]byte { return nil },
	}))
	return &subject{c}
}

func (s *subject) sample() pairs.Sample {
	return pairs.CPU(records, func() {
		for range records / pollSize {
			_, err := s.chain.Poll(pollSize)
			must(err)
		}
	})
}

func (s *subject) close() { must(s.chain.Close()) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}
