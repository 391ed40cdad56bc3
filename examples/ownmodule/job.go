package main

import (
	"strings"
	"time"

	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/flow"
)

// Params are the parameters of the job.
type Params struct {
	Rate  float64 `default:"100" help:"lines per second; 0: as fast as possible"`
	Lines int64   `default:"0" help:"number of lines; 0: without end"`
}

// WordCount counts the words of generated lines.
var WordCount = flow.Define("word-count", func(g *flow.Graph, p Params) error {
	return wordCount(g, p, flow.Discard[Count]())
}).Help("counts the words of generated lines")

func wordCount(g *flow.Graph, p Params, out flow.Sink[Count]) error {
	lines := flow.From(g, "lines", generator.New(generator.Options{Rate: p.Rate, Records: p.Lines, End: p.Lines > 0}, line))
	words := flow.FlatMap(lines, "split", strings.FieldsSeq)
	byWord := flow.KeyBy(words, "by-word", func(w string) string { return w })
	counts := flow.Process(byWord, "count", newCounter)
	flow.To(counts, "out", out)
	return nil
}

var verse = [...]string{
	"the river flows and the river stays",
	"a low wall across the river",
	"and the water goes over",
}

func line(n int64) string { return verse[n%int64(len(verse))] }

// Count is how often a word has been seen.
type Count struct {
	Word string
	N    int64
}

type counter struct {
	n *flow.Value[int64]
}

func newCounter(s *flow.Setup) flow.Processor[string, string, Count] {
	return &counter{n: flow.NewValue[int64](s, "n")}
}

func (c *counter) Process(ctx *flow.Context[string], _ string, out *flow.Out[Count]) error {
	c.n.Update(func(n *int64) { *n++ })
	ctx.SetTimer(ctx.Now().Truncate(time.Minute).Add(time.Minute))
	out.Emit(Count{ctx.Key(), c.n.Get()})
	return nil
}

// OnTimer logs each word's count once a minute.
func (c *counter) OnTimer(ctx *flow.Context[string], at time.Time, _ *flow.Out[Count]) error {
	ctx.Logger().Sugar().Infof("%s: %d", ctx.Key(), c.n.Get())
	return nil
}
