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

// exampleEnricher keeps the newest profile of each user for the user's clicks.
type exampleEnricher struct {
	profile *flow.Value[string]
	unknown *flow.Out[string]
}

func (e *exampleEnricher) ProcessFirst(c *flow.Context[string], click string, out *flow.Out[string]) error {
	profile, known := e.profile.Lookup()
	if !known {
		e.unknown.Emit(click)
		return nil
	}
	out.Emit(click + " by " + profile)
	return nil
}

func (e *exampleEnricher) ProcessSecond(_ *flow.Context[string], profile string, _ *flow.Out[string]) error {
	e.profile.Set(profile)
	return nil
}

func ExampleCoProcess() {
	unknown := flow.NewTag[string]("unknown")
	user := func(v string) string { return v[:1] }
	job := flow.Define("enrich", func(g *flow.Graph, _ struct{}) error {
		clicks := flow.Map(flow.From(g, "clicks", numbers(10)), "parse-click", func(n int) string { return fmt.Sprint("u clicks ", n) })
		profiles := flow.Map(flow.From(g, "profiles", numbers(1)), "parse-profile", func(n int) string { return "u is 18" })
		both := flow.ConnectKeyed(flow.KeyBy(clicks, "by-user", user), flow.KeyBy(profiles, "by-id", user))
		enriched := flow.CoProcess(both, "enrich", func(s *flow.Setup) flow.CoProcessor[string, string, string, string] {
			return &exampleEnricher{flow.NewValue[string](s, "profile"), flow.SideOutput(s, unknown)}
		})
		flow.To(enriched, "out", flow.Discard[string]())
		flow.To(flow.Rebalance(flow.Side(enriched, unknown)), "unknown", flow.Discard[string]())
		return nil
	})
	p, err := job.Build(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := jobgraph.Compile(p.Logical(), jobgraph.Options{Parallelism: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range plan.Edges {
		fmt.Printf("%s => %s, input %d by %s%s\n", plan.Vertices[e.From].Name, plan.Vertices[e.To].Name, e.Input, e.Partitioning, strings.TrimSuffix(", side "+e.Side, ", side "))
	}
	// Output:
	// clicks -> parse-click => enrich -> out, input 0 by hash
	// profiles -> parse-profile => enrich -> out, input 1 by hash
	// enrich -> out => unknown, input 0 by rebalance, side unknown
}
