package flow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// seenBy is a mapper that notes which subtask got what.
type seenBy struct {
	seen    map[int][]int
	subtask int
}

func (s *seenBy) Open(r *flow.Runtime) error { s.subtask = r.Subtask(); return nil }
func (s *seenBy) Map(v int) (int, error) {
	s.seen[s.subtask] = append(s.seen[s.subtask], v)
	return v, nil
}

// dealt runs six numbers from two subtasks to three, dealt as wished, and says which
// of the three got which.
func dealt(t *testing.T, wish func(flow.Stream[int]) flow.Stream[int]) (seen map[int][]int, p jobgraph.Partitioning) {
	seen = make(map[int][]int)
	n := flowtest.OpenAll(t, define(func(g *flow.Graph) {
		in := flow.From(g, "in", numbers(6))
		two := flow.PartitionBy(in, "first-three", func(v, n int) int { return v / 3 })
		halves := flow.Map(two, "halves", func(v int) int { return v }, flow.Parallelism(2))
		flow.MapWith(wish(halves), "see", &seenBy{seen: seen}, flow.Parallelism(3))
	}), nil, flowtest.Options{})
	n.Run()
	for _, v := range seen {
		slices.Sort(v)
	}
	return seen, n.Graph.Edges[1].Partitioning
}

func TestRecordsAreDealtAsWished(t *testing.T) {
	t.Parallel()
	all := []int{0, 1, 2, 3, 4, 5}
	for name, tt := range map[string]struct {
		wish func(flow.Stream[int]) flow.Stream[int]
		is   jobgraph.Partitioning
		want map[int][]int // nil: two each
	}{
		"nothing":   {func(s flow.Stream[int]) flow.Stream[int] { return s }, jobgraph.Rebalance, nil},
		"rebalance": {flow.Rebalance[int], jobgraph.Rebalance, nil},
		"broadcast": {flow.Broadcast[int], jobgraph.Broadcast, map[int][]int{0: all, 1: all, 2: all}},
		"partition by": {func(s flow.Stream[int]) flow.Stream[int] {
			return flow.PartitionBy(s, "last", func(v, n int) int { return min(v, n-1) })
		}, jobgraph.Custom, map[int][]int{0: {0}, 1: {1}, 2: {2, 3, 4, 5}}},
		// Subtask 0 reaches consumers 0 and 1, subtask 1 the third only.
		"rescale": {flow.Rescale[int], jobgraph.Rescale, map[int][]int{0: {1}, 1: {0, 2}, 2: {3, 4, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen, is := dealt(t, tt.wish)
			if is != tt.is {
				t.Errorf("the edge is %s", is)
			}
			got := 0
			for i := range 3 {
				got += len(seen[i])
				if tt.want != nil && !slices.Equal(seen[i], tt.want[i]) || tt.want == nil && len(seen[i]) != 2 {
					t.Errorf("subtask %d got %v", i, seen[i])
				}
			}
			if tt.want == nil && got != 6 {
				t.Errorf("%d records of 6", got)
			}
		})
	}
}

func TestWishesBreakChainsAndNothingElseIs(t *testing.T) {
	t.Parallel()
	pass := func(v int) int { return v }
	p, err := define(func(g *flow.Graph) {
		in := flow.From(g, "in", numbers(1))
		for i, s := range []flow.Stream[int]{in, flow.Rebalance(in), flow.Rescale(in), flow.Broadcast(in),
			flow.PartitionBy(in, "by", func(int, int) int { return 0 }), flow.Union(in, in)} {
			flow.Map(s, fmt.Sprint("m", i), pass)
		}
	}).Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := jobgraph.Compile(p.Logical(), jobgraph.Options{Parallelism: 2})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range g.Edges {
		got = append(got, fmt.Sprintf("%s %s %v", e.ToOperator, e.Partitioning, e.ID()))
	}
	want := []string{"m1 rebalance {in m1 0}", "m2 rescale {in m2 0}", "m3 broadcast {in m3 0}", "m4 custom {in m4 0}", "m5 forward {in m5 0}", "m5 forward {in m5 1}"}
	if g.Vertices[0].Name != "in -> m0" || !slices.Equal(got, want) {
		t.Errorf("%s, %q", g.Vertices[0].Name, got)
	}
}

func TestUnionHasTheRecordsOfAll(t *testing.T) {
	t.Parallel()
	var got []string
	n := flowtest.OpenAll(t, define(func(g *flow.Graph) {
		a, b := flow.From(g, "a", numbers(3)), flow.From(g, "b", numbers(2))
		m := flow.Map(b, "m", func(v int) int { return 10 + v }, flow.Parallelism(3))
		all := flow.Union(a, b, flow.Broadcast(m), a) // a twice
		tens := flow.Map(all, "tens", func(v int) int { return 10 * v }, flow.Parallelism(2))
		k := flow.KeyBy(flow.Union(tens, b), "k", func(v int) int { return v })
		flow.To(flow.Process(k, "count", func(s *flow.Setup) flow.Processor[int, int, string] {
			n := flow.NewValue[int](s, "n")
			return flow.ProcessFunc[int, int, string](func(c *flow.Context[int], v int, out *flow.Out[string]) error {
				n.Update(func(n *int) { *n++ })
				out.Emit(fmt.Sprint(v, " x", n.Get()))
				return nil
			})
		}), "out", collect[string]{got: &got})
	}), nil, flowtest.Options{})
	n.Run()
	slices.Sort(got)
	want := []string{
		"0 x1", "0 x2", "0 x3", "0 x4", "1 x1", "10 x1", "10 x2", "10 x3", // a twice and b by "tens", and b itself
		"100 x1", "100 x2", "110 x1", "110 x2", // to both subtasks
		"20 x1", "20 x2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

type measured struct {
	Sensor string
	Value  int
}

// limits is a CoProcessor: the first stream sets limits, the second is compared.
type limits struct {
	limit *flow.Value[int]
	count *flow.Value[int64]
	late  *flow.Out[measured]
}

var unlimited = flow.NewTag[measured]("unlimited")

func newLimits(s *flow.Setup) flow.CoProcessor[string, measured, measured, string] {
	return &limits{flow.NewValue[int](s, "limit"), flow.NewValue[int64](s, "count"), flow.SideOutput(s, unlimited)}
}

func (l *limits) ProcessFirst(c *flow.Context[string], v measured, out *flow.Out[string]) error {
	l.limit.Set(v.Value)
	c.SetTimer(time.UnixMilli(1000))
	return nil
}

func (l *limits) ProcessSecond(c *flow.Context[string], v measured, out *flow.Out[string]) error {
	l.count.Update(func(n *int64) { *n++ })
	limit, ok := l.limit.Lookup()
	switch {
	case !ok:
		l.late.EmitAt(7, v)
	case v.Value > limit:
		out.Emit(fmt.Sprintf("%s %d > %d", c.Key(), v.Value, limit))
	}
	return nil
}

func (l *limits) OnTimer(c *flow.Context[string], _ time.Time, out *flow.Out[string]) error {
	out.Emit(fmt.Sprintf("%s had %d", c.Key(), l.count.Get()))
	l.limit.Clear()
	return nil
}

func (l *limits) FinishInput(input int, out *flow.Out[string]) error {
	out.Emit(fmt.Sprint("end of ", input))
	return nil
}

func (l *limits) Finish(out *flow.Out[string]) error {
	out.Emit("the end")
	return nil
}

// limitsJob feeds limits from two keyed streams, of which the second is a union.
func limitsJob(got *[]string, late *[]measured) flow.Job {
	return define(func(g *flow.Graph) {
		set := flow.Map(flow.From(g, "set", numbers(4)), "sets", func(v int) measured { return measured{fmt.Sprint(v % 2), v} })
		meter := func(name string, from int) flow.Stream[measured] {
			return flow.Map(flow.From(g, name, numbers(3)), name+"s", func(v int) measured { return measured{fmt.Sprint(v), v + from} })
		}
		both := flow.ConnectKeyed(
			flow.KeyBy(set, "by-sensor", func(m measured) string { return m.Sensor }),
			flow.KeyBy(flow.Union(meter("x", 0), meter("y", 3)), "by-id", func(m measured) string { return m.Sensor }))
		over := flow.CoProcess(both, "limits", newLimits)
		flow.To(over, "over", collect[string]{got: got})
		flow.To(flow.Side(over, unlimited), "late", collect[measured]{got: late})
		k := flow.KeyBy(flow.Side(over, unlimited), "again", func(m measured) int { return m.Value })
		flow.Process(k, "far", func(*flow.Setup) flow.Processor[int, measured, int] {
			return flow.ProcessFunc[int, measured, int](func(*flow.Context[int], measured, *flow.Out[int]) error { return nil })
		})
	})
}

func TestConnectedKeyedStreamsShareStateByKey(t *testing.T) {
	t.Parallel()
	var got []string
	var late []measured
	job := limitsJob(&got, &late)
	task := flowtest.Open(t, job, nil, flowtest.At("limits"))
	inputs := map[string]int{}
	for i, e := range task.Vertex.Inputs {
		if edge := task.Graph.Edges[e]; edge.Input != i || edge.Partitioning != jobgraph.Hash {
			t.Errorf("input %d: %+v", i, edge)
		}
		inputs[task.Graph.Edges[e].FromOperator] = i
	}
	if len(inputs) != 3 || inputs["sets"] != 0 {
		t.Fatalf("inputs %v", inputs)
	}
	records := func(source string) []flowtest.Record {
		s := flowtest.Open(t, job, nil, flowtest.At(source))
		s.Poll(100)
		return s.Emitted()
	}
	task.MustFeedInput(inputs["xs"], records("x")[:1]) // no limit yet
	task.MustFeedInput(inputs["sets"], records("set")) // 0: 2, 1: 3
	task.MustFeedInput(inputs["ys"], records("y"))     // 3, 4, 5
	task.MustFeedInput(inputs["xs"], records("x")[1:])
	if want := []string{"0 3 > 2", "1 4 > 3"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if want := []measured{{"0", 0}, {"2", 5}, {"2", 2}}; !slices.Equal(late, want) {
		t.Errorf("side output %v", late)
	}
	side := task.Outputs[0]
	if r := side.Take(); side.Edge.Side != "unlimited" || len(r) != 3 || r[0].Timestamp != 7 || r[0].Hash == r[1].Hash {
		t.Errorf("side output %+v: %v", side.Edge, r)
	}
	got = nil
	if err := task.Advance(time.Hour); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := errors.Join(task.Chain.EndOfInput(i), task.Chain.EndOfInput(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := task.Chain.Finish(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"0 had 2", "1 had 2", "end of 0", "end of 1", "the end"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	want := []operator.Counts{
		{Operator: "limits", RecordsIn: 10, RecordsOut: 10}, {Operator: "over", RecordsIn: 7}, {Operator: "late", RecordsIn: 3},
	}
	if counts := task.Chain.Counts(); !slices.Equal(counts, want) {
		t.Errorf("counts %v", counts)
	}
}

func TestConnectedStreamsOfTwoTypes(t *testing.T) {
	t.Parallel()
	var mapped, flat []string
	n := flowtest.OpenAll(t, define(func(g *flow.Graph) {
		in := flow.From(g, "in", numbers(3))
		words := flow.Map(in, "words", func(v int) string { return fmt.Sprint("w", v) })
		both := flow.Connect(words, flow.Broadcast(in))
		m := flow.CoMap(both, "map", func(w string) string { return w }, func(v int) string { return fmt.Sprint("n", v) }, flow.Parallelism(2))
		flow.To(flow.Rebalance(m), "mapped", collect[string]{got: &mapped})
		f := flow.CoFlatMap(both, "flat", func(w string, out *flow.Out[string]) error { return nil },
			func(v int, out *flow.Out[string]) error {
				for range v {
					out.Emit(fmt.Sprint(v))
				}
				return nil
			})
		flow.To(f, "flattened", collect[string]{got: &flat})
	}), nil, flowtest.Options{})
	n.Run()
	n.Finish()
	slices.Sort(mapped)
	if want := []string{"n0", "n0", "n1", "n1", "n2", "n2", "w0", "w1", "w2"}; !slices.Equal(mapped, want) {
		t.Errorf("mapped %q", mapped)
	}
	if want := []string{"1", "2", "2"}; !slices.Equal(flat, want) {
		t.Errorf("flat %q", flat)
	}
}

func TestUnreadSideOutputIsDropped(t *testing.T) {
	t.Parallel()
	tag := flow.NewTag[string]("x")
	task := flowtest.Open(t, define(func(g *flow.Graph) {
		k := flow.KeyBy(flow.Map(flow.From(g, "in", numbers(1)), "w", func(int) string { return "" }), "k", func(w string) string { return w[:1] })
		flow.Process(k, "p", func(s *flow.Setup) flow.Processor[string, string, int] {
			side := flow.SideOutput(s, tag)
			return flow.ProcessFunc[string, string, int](func(_ *flow.Context[string], w string, _ *flow.Out[int]) error {
				side.Emit(w)
				return nil
			})
		})
	}), nil, flowtest.At("p"))
	task.MustFeed(keyed(t, "ant", "bee"))
	if c := task.Chain.Counts(); c[0].RecordsOut != 2 {
		t.Errorf("counts %v", c)
	}
}

func TestAllFaultsOfEdgesAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	tag, other := flow.NewTag[int]("side"), flow.NewTag[string]("side")
	job := flow.Define("faulty", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "in", numbers(1))
		flow.Rebalance(flow.Broadcast(in))
		flow.PartitionBy(in, "by", nil)
		flow.PartitionBy(in, "by", func(int, int) int { return 0 })
		flow.PartitionBy(in, "", func(int, int) int { return 0 })
		k := flow.KeyBy(flow.Rescale(in), "k", func(v int) int { return v })
		p := flow.Process(k, "p", func(s *flow.Setup) flow.Processor[int, int, int] {
			flow.SideOutput(s, tag)
			flow.SideOutput(s, other)
			return flow.ProcessFunc[int, int, int](func(*flow.Context[int], int, *flow.Out[int]) error { return nil })
		})
		flow.Side(p, other)
		flow.Side(p, flow.NewTag[int]("none"))
		flow.Side(flow.Union(p, p), tag)
		flow.CoMap[int, int, int](flow.Connect(in, in), "co", nil, nil)
		flow.CoProcess(flow.ConnectKeyed(k, k), "cp", func(s *flow.Setup) flow.CoProcessor[int, int, int, chan int] { return nil })
		flow.CoMap(flow.Connect(in, p), "chans", func(int) chan int { return nil }, func(int) chan int { return nil })
		flow.To(flow.Union(flow.CoMap(flow.Connect(in, p), "chans2", func(int) chan int { return nil }, func(int) chan int { return nil })), "out", flow.Discard[chan int]())
		return nil
	})
	_, err := job.Build(nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`output of operator "in": it is to be dealt by broadcast and by rebalance`,
		`partitioner "by": function is nil`,
		`operator "by": name used twice`,
		`a partitioner needs a name`,
		`key "k": its stream is dealt by key, not by rescale`,
		`operator "p": side output "side" declared twice`,
		`operator "p": side output "side" has records of type int, not string`,
		`operator "p": there is no side output "none"`,
		`side output "side" is asked of a stream that is not what an operator returned`,
		`operator "co": its function is nil`,
		`operator "cp": its function is nil`,
		`operator "out": input records: unsupported type: chan int`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in:\n%v", want, err)
		}
	}
	_, err = flow.Define("no stream", func(*flow.Graph, struct{}) error {
		defer func() {
			if v := recover(); v != "a stream is made by the functions of package flow" {
				t.Errorf("panic %v", v)
			}
		}()
		flow.Union(flow.Stream[int]{})
		return nil
	}).Build(nil)
	if err == nil {
		t.Error("a job without operators")
	}
}

func TestFailuresOfAPartitionerNameIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fn   func(v, n int) int
		want string
	}{
		"too large": {func(_, n int) int { return n }, `partitioner "by": it chose subtask 3 of 3`},
		"negative":  {func(int, int) int { return -1 }, `partitioner "by": it chose subtask -1 of 3`},
		"panic":     {func(v, _ int) int { return 1 / v }, `partitioner "by": panic: runtime error: integer divide by zero`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := flowtest.Open(t, define(func(g *flow.Graph) {
				m := flow.Map(flow.From(g, "in", numbers(1)), "m", func(v int) int { return v })
				flow.To(flow.PartitionBy(m, "by", tt.fn), "out", flow.Discard[int](), flow.Parallelism(3))
			}), nil, flowtest.Options{})
			_, err := task.Chain.Poll(1)
			var f *weir.Failure
			if !errors.As(err, &f) || f.Message != tt.want || f.Operator != "m" || f.Fault != weir.FaultUser || len(task.Outputs[0].Records) != 0 {
				t.Errorf("got %+v, %v", err, task.Outputs[0].Records)
			}
		})
	}
}

func TestChainRefusesEdgesThatAreNotTheJobs(t *testing.T) {
	t.Parallel()
	var got []string
	var late []measured
	p, err := limitsJob(&got, &late).Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	graph := func() *jobgraph.JobGraph {
		g, err := jobgraph.Compile(p.Logical(), jobgraph.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for name, break_ := range map[string]func(g *jobgraph.JobGraph) (vertex int){
		"another input":        func(g *jobgraph.JobGraph) int { g.Edges[0].Input = 1; return g.Edges[0].From },
		"an input too high":    func(g *jobgraph.JobGraph) int { g.Edges[0].Input = 3; return g.Edges[0].From },
		"a negative input":     func(g *jobgraph.JobGraph) int { g.Edges[0].Input = -1; return g.Edges[0].From },
		"another side":         func(g *jobgraph.JobGraph) int { g.Edges[0].Side = "s"; return g.Edges[0].From },
		"an input that is not": func(g *jobgraph.JobGraph) int { to := g.Edges[0].To; g.Vertices[to].Inputs = []int{0}; return to },
		"a chain with inputs": func(g *jobgraph.JobGraph) int {
			g.Vertices[0].Operators = append(g.Vertices[0].Operators, "limits")
			return 0
		},
	} {
		g := graph()
		v := break_(g)
		if _, err := p.NewChain(&g.Vertices[v], g); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestRecordsOfAllEdgesNeedNoAllocation(t *testing.T) {
	pass := func(v int64) int64 { return v }
	tag := flow.NewTag[int64]("odd")
	job := define(func(g *flow.Graph) {
		in := flow.Map(flow.From(g, "in", numbers(1<<40)), "number", func(v int) int64 { return int64(v) })
		by := flow.PartitionBy(in, "by", func(v int64, n int) int { return int(v) % n })
		m := flow.CoMap(flow.Connect(by, flow.Broadcast(in)), "co-map", pass, pass, flow.Parallelism(3))
		flow.To(flow.Rescale(m), "drop", flow.Discard[int64]())
		k := flow.KeyBy(in, "k", func(v int64) int64 { return v % 64 })
		p := flow.CoProcess(flow.ConnectKeyed(k, k), "co-process", func(s *flow.Setup) flow.CoProcessor[int64, int64, int64, int64] {
			return &counts{flow.NewValue[int64](s, "n"), flow.SideOutput(s, tag)}
		})
		flow.To(flow.Rebalance(p), "main", flow.Discard[int64]())
		flow.To(flow.Rebalance(flow.Side(p, tag)), "side", flow.Discard[int64]())
	})
	source := flowtest.Open(t, job, nil, flowtest.At("in"))
	for _, o := range source.Outputs {
		o.CountOnly = true
	}
	if n := testing.AllocsPerRun(10, func() { source.Poll(1000) }); n != 0 {
		t.Errorf("producer: %v allocations in 1000 records", n)
	}
	for _, o := range source.Outputs {
		o.CountOnly = false
	}
	source.Poll(operator.BatchSize)
	for _, name := range []string{"co-map", "co-process"} {
		task := flowtest.Open(t, job, nil, flowtest.At(name))
		for _, o := range task.Outputs {
			o.CountOnly = true
		}
		for i, e := range task.Vertex.Inputs {
			j := slices.Index(source.Vertex.Outputs, e)
			records := source.Outputs[j].Take()
			if n := testing.AllocsPerRun(10, func() { task.MustFeedInput(i, records) }); n != 0 {
				t.Errorf("%s, input %d: %v allocations in a batch", name, i, n)
			}
			if task.Outputs[0].N == 0 || name == "co-process" && task.Outputs[1].N == 0 {
				t.Errorf("%s, input %d: nothing came out", name, i)
			}
		}
	}
}

// counts is a CoProcessor that counts, and tells even counts from odd ones.
type counts struct {
	n   *flow.Value[int64]
	odd *flow.Out[int64]
}

func (c *counts) ProcessFirst(_ *flow.Context[int64], v int64, out *flow.Out[int64]) error {
	n := c.n.Get() + 1
	c.n.Set(n)
	if n%2 == 1 {
		c.odd.Emit(v)
	}
	out.Emit(n)
	return nil
}

func (c *counts) ProcessSecond(ctx *flow.Context[int64], v int64, out *flow.Out[int64]) error {
	return c.ProcessFirst(ctx, v, out)
}
