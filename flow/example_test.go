package flow_test

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/jobgraph"
)

func ExampleDefine() {
	type Params struct {
		Shortest int `default:"1" help:"words with fewer letters are left out"`
	}
	type Count struct {
		Word string
		N    int64
	}
	job := flow.Define("word-count", func(g *flow.Graph, p Params) error {
		numbers := flow.From(g, "numbers", numbers(10))
		lines := flow.Map(numbers, "lines", func(n int) string { return strings.Repeat("a river ", n) })
		words := flow.FlatMap(lines, "split", strings.FieldsSeq)
		long := flow.Filter(words, "long", func(w string) bool { return len(w) >= p.Shortest })
		byWord := flow.KeyBy(long, "by-word", func(w string) string { return w })
		counts := flow.Process(byWord, "count", func(s *flow.Setup) flow.Processor[string, string, Count] {
			n := flow.NewValue[int64](s, "n")
			return flow.ProcessFunc[string, string, Count](func(c *flow.Context[string], _ string, out *flow.Out[Count]) error {
				n.Update(func(n *int64) { *n++ })
				out.Emit(Count{c.Key(), n.Get()})
				return nil
			})
		})
		flow.To(counts, "out", flow.Discard[Count]())
		return nil
	})

	p, err := job.Build(map[string]string{"shortest": "2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := jobgraph.Compile(p.Logical(), jobgraph.Options{Parallelism: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range plan.Vertices {
		fmt.Println(v.Name)
	}
	// Output:
	// numbers -> lines -> split -> long
	// count -> out
}
