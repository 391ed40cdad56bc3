package randomjob

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// Names in the job.
const (
	Name          = "random-graph"
	CountOperator = "count"
	TallyState    = "tally"
	receiveSuffix = "-receive"
)

// Params are the job's parameters.
type Params struct {
	Seed    uint64        `default:"1" help:"of the graph"`
	Widths  uint64        `default:"1" help:"of the parallelism of each vertex"`
	Once    bool          `default:"false" help:"copies of a broadcast record are dropped but for one: the answer is that of every parallelism"`
	Records int64         `default:"1000" help:"records of each source; the sources stay after the last one"`
	Rate    float64       `default:"0" help:"records per second of each source; 0: as fast as possible"`
	Keys    int64         `default:"7" help:"number of keys"`
	Size    flow.Size     `default:"100B" help:"bytes of a record, at most"`
	Large   flow.Size     `default:"0B" help:"bytes of one record in 64; 0: as of the others"`
	Sleep   time.Duration `default:"0s" help:"time that a record takes in one of the vertices"`
}

// Job is the entry point.
var Job = flow.Define(Name, build).Help("a random graph that counts its records")

// Plan is the graph that these parameters make.
func (p Params) Plan() Plan { return Draw(p.Seed, p.Widths, p.Once) }

// Map writes the parameters as they are submitted.
func (p Params) Map() map[string]string {
	return map[string]string{
		"seed": fmt.Sprint(p.Seed), "widths": fmt.Sprint(p.Widths), "once": fmt.Sprint(p.Once),
		"records": fmt.Sprint(p.Records), "rate": fmt.Sprint(p.Rate), "keys": fmt.Sprint(p.Keys),
		"size": fmt.Sprintf("%dB", p.Size), "large": fmt.Sprintf("%dB", p.Large), "sleep": p.Sleep.String(),
	}
}

func build(g *flow.Graph, p Params) error {
	if p.Records < 1 || p.Keys < 1 || p.Size > 1<<20 || p.Large > 1<<20 || p.Sleep < 0 {
		return fmt.Errorf("%w: records and keys are 1 or more, sizes at most 1MiB, and sleep is not negative", operator.ErrBadParams)
	}
	b := &builder{graph: g, params: p, plan: p.Plan()}
	b.outputs = make([]outputs, len(b.plan.Nodes))
	for i := range b.plan.Nodes {
		b.add(&b.plan.Nodes[i])
	}
	return nil
}

// outputs are a vertex's.
type outputs struct{ main, side flow.Stream[Record] }

type builder struct {
	graph   *flow.Graph
	params  Params
	plan    Plan
	outputs []outputs // by node
}

var sideTag = flow.NewTag[Record]("side")

// add adds a vertex.
func (b *builder) add(n *Node) {
	width := flow.Parallelism(n.Parallelism)
	out := &b.outputs[n.Index]
	switch n.Kind {
	case Source:
		o := generator.Options{Rate: b.params.Rate, Records: b.params.Records}
		out.main = flow.From(b.graph, n.Name, generator.New(o, func(i int64) Record { return b.params.newRecord(n.Index, i) }), width)
	case Process, Count:
		in := flow.KeyBy(b.port(n, 0), n.Name+"-key", keyOf)
		out.main = flow.Process(in, n.Name, func(s *flow.Setup) flow.Processor[int64, Record, Record] { return b.newCounter(s, n) }, width)
	case CoProcess:
		in := flow.ConnectKeyed(flow.KeyBy(b.port(n, 0), n.Name+"-first", keyOf), flow.KeyBy(b.port(n, 1), n.Name+"-second", keyOf))
		out.main = flow.CoProcess(in, n.Name, func(s *flow.Setup) flow.CoProcessor[int64, Record, Record, Record] { return b.newCounter(s, n) }, width)
	case CoMap:
		in := flow.Connect(b.port(n, 0), b.port(n, 1))
		out.main = flow.CoMap(in, n.Name, b.mapping(n, 0), b.mapping(n, 1), width, flow.StartNewChain())
	case CoFlatMap:
		in := flow.Connect(b.port(n, 0), b.port(n, 1))
		out.main = flow.CoFlatMap(in, n.Name, b.flatMapping(n, 0), b.flatMapping(n, 1), width, flow.StartNewChain())
	case Alone:
		flow.To(flow.MapWith(b.port(n, 0), n.Name, &aloneCounter{params: b.params}, width), "drop", flow.Discard[Record](), width)
		return
	default:
		out.main = b.plain(n, width)
	}
	if n.Kind == Process || n.Kind == CoProcess {
		out.side = flow.Side(out.main, sideTag)
	}
	if n.Tail {
		out.main = flow.Map(out.main, n.Name+"-tail", func(r Record) Record { return b.params.hop(r, n.place(7)) }, width)
	}
	if n.Kind == Count {
		flow.To(out.main, "drop", flow.Discard[Record](), width)
	}
}

func keyOf(r Record) int64 { return r.Key }

// plain adds a vertex of one port without a key.
func (b *builder) plain(n *Node, width flow.Option) flow.Stream[Record] {
	in, start := b.port(n, 0), []flow.Option{width, flow.StartNewChain()}
	if b.plan.Once {
		in = flow.MapWith(in, n.Name+receiveSuffix, &receiver{}, start...)
		in = flow.Filter(in, n.Name+"-kept", func(r Record) bool { return !r.Drop }, width)
		start = start[:1]
	}
	if n.Kind == Map {
		return flow.Map(in, n.Name, b.mapping(n, 0), start...)
	}
	return flow.FlatMapFunc(in, n.Name, b.flatMapping(n, 0), start...)
}

// port is the stream that a port of a vertex reads.
func (b *builder) port(n *Node, port int) flow.Stream[Record] {
	var all []flow.Stream[Record]
	for i, in := range n.Ports[port] {
		s := b.outputs[in.From].main
		if in.Side {
			s = b.outputs[in.From].side
		}
		name := fmt.Sprintf("%s-%d-%d", n.Name, port, i)
		switch in.Edge {
		case jobgraph.Rebalance:
			s = flow.Rebalance(s)
		case jobgraph.Rescale:
			s = flow.Rescale(s)
		case jobgraph.Broadcast:
			if b.plan.Once {
				mark := func(r Record) Record { r.Copy = true; return r }
				s = flow.Map(s, name+"-mark", mark, flow.Parallelism(b.plan.Nodes[in.From].Parallelism))
			}
			s = flow.Broadcast(s)
		case jobgraph.Custom:
			s = flow.PartitionBy(s, name+"-by", func(r Record, n int) int { return int(mix(r.ID, 5) % uint64(n)) })
		}
		all = append(all, s)
	}
	return flow.Union(all[0], all[1:]...)
}

func (b *builder) mapping(n *Node, port int) func(Record) Record {
	return func(r Record) (out Record) {
		b.rest(n)
		apply(b.params, n, port, r, func(r Record) { out = r }, nil)
		return out
	}
}

func (b *builder) flatMapping(n *Node, port int) func(Record, *flow.Out[Record]) error {
	return func(r Record, out *flow.Out[Record]) error {
		b.rest(n)
		apply(b.params, n, port, r, out.Emit, nil)
		return nil
	}
}

// apply is [Node.apply] without the chained map, which is an operator of its own here.
func apply(p Params, n *Node, port int, r Record, main, side func(Record)) {
	head := *n
	head.Tail = false
	head.apply(p, port, r, main, side)
}

func (b *builder) rest(n *Node) {
	if n.Slow && b.params.Sleep > 0 {
		<-time.After(b.params.Sleep) // as user code does that waits for something
	}
}

// receiver drops all copies of a broadcast record but for one.
type receiver struct{ subtask, parallelism uint64 }

// Open implements [flow.Opener].
func (v *receiver) Open(r *flow.Runtime) error {
	v.subtask, v.parallelism = uint64(r.Subtask()), uint64(r.Parallelism())
	return nil
}

// Map implements [flow.Mapper].
func (v *receiver) Map(r Record) (Record, error) {
	if r.Copy {
		r.Copy, r.Drop = false, mix(r.ID, 9)%v.parallelism != v.subtask
	}
	return r, nil
}

// counter counts the records of each key, of one stream or two.
type counter struct {
	builder *builder
	node    *Node
	tally   *flow.Value[Tally]
	side    *flow.Out[Record] // nil for the last
}

func (b *builder) newCounter(s *flow.Setup, n *Node) *counter {
	c := &counter{builder: b, node: n, tally: flow.NewValue[Tally](s, TallyState)}
	if n.Kind != Count {
		c.side = flow.SideOutput(s, sideTag)
	}
	return c
}

// Process implements [flow.Processor].
func (c *counter) Process(_ *flow.Context[int64], r Record, out *flow.Out[Record]) error {
	return c.process(0, r, out)
}

// ProcessFirst implements [flow.CoProcessor].
func (c *counter) ProcessFirst(_ *flow.Context[int64], r Record, out *flow.Out[Record]) error {
	return c.process(0, r, out)
}

// ProcessSecond implements [flow.CoProcessor].
func (c *counter) ProcessSecond(_ *flow.Context[int64], r Record, out *flow.Out[Record]) error {
	return c.process(1, r, out)
}

func (c *counter) process(port int, r Record, out *flow.Out[Record]) error {
	c.builder.rest(c.node)
	if err := c.builder.params.check(r); err != nil {
		return damaged(err)
	}
	c.tally.Update(func(t *Tally) { t.add(r) })
	if c.node.Kind == Count {
		return nil
	}
	apply(c.builder.params, c.node, port, r, out.Emit, c.side.Emit)
	return nil
}

func damaged(err error) error {
	return &weir.Failure{Message: err.Error(), Fault: weir.FaultSystem, NoRetry: true}
}

// aloneCounter counts in state of its own.
type aloneCounter struct {
	params Params
	tally  Tally
}

// Map implements [flow.Mapper].
func (c *aloneCounter) Map(r Record) (Record, error) {
	if err := c.params.check(r); err != nil {
		return r, damaged(err)
	}
	c.tally.add(r)
	return r, nil
}

// SnapshotState implements [flow.StateKeeper].
func (c *aloneCounter) SnapshotState() ([][]byte, error) { return [][]byte{c.tally.append(nil)}, nil }

// RestoreState implements [flow.StateKeeper].
func (c *aloneCounter) RestoreState(elements [][]byte) error {
	var faults []error
	for _, b := range elements {
		t, err := parseTally(b)
		faults = append(faults, err)
		c.tally.merge(t)
	}
	return errors.Join(faults...)
}
