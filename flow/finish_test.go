package flow_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/operator"
)

// totals emits nothing but each key's total, at the end.
type totals struct {
	n *flow.Value[int64]
}

func (c *totals) Process(_ *flow.Context[string], _ int, _ *flow.Out[string]) error {
	c.n.Update(func(n *int64) { *n++ })
	return nil
}

func (c *totals) FinishKey(ctx *flow.Context[string], out *flow.Out[string]) error {
	out.Emit(fmt.Sprint(ctx.Key(), c.n.Get()))
	return nil
}

func (c *totals) Finish(out *flow.Out[string]) error {
	out.Emit("end")
	return nil
}

func TestLastRecordsOfEveryKeyComeBeforeThoseOfTheOperator(t *testing.T) {
	t.Parallel()
	job := flow.Define("totals", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "in", numbers(10))
		byKey := flow.KeyBy(in, "by", func(n int) string { return fmt.Sprint("k", n%3, "=") })
		out := flow.Process(byKey, "totals", func(s *flow.Setup) flow.Processor[string, int, string] {
			return &totals{n: flow.NewValue[int64](s, "n")}
		})
		flow.To(out, "out", flow.Discard[string](), flow.StartNewChain())
		return nil
	})
	source := flowtest.Open(t, job, nil, flowtest.Options{})
	for source.Poll(100) != operator.SourceEnd {
	}
	task := flowtest.Open(t, job, nil, flowtest.At("totals"))
	task.MustFeed(source.Emitted())
	if got := task.Emitted(); len(got) != 0 {
		t.Errorf("%d records before the end", len(got))
	}
	if err := task.Chain.Finish(); err != nil {
		t.Fatal(err)
	}
	c, err := codec.For[string]()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range task.Emitted() {
		var s string
		if err := c.Decode(r.Payload, &s); err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	if len(got) != 4 || got[3] != "end" {
		t.Fatalf("got %q", got)
	}
	slices.Sort(got)
	if want := []string{"end", "k0=4", "k1=3", "k2=3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
