package randomjob

import (
	"fmt"
	"math/rand/v2"

	"github.com/weirflow/weir/jobgraph"
)

const (
	maxVertices    = 6
	maxParallelism = 4
	// maxWeight bounds how many records an operator gets for each record of a source.
	maxWeight = 16
)

// Kind is what a vertex does.
type Kind uint8

// Kinds.
const (
	Source Kind = iota
	Map
	Filter
	FlatMap
	Process   // keyed; with a side output
	CoMap     // two streams
	CoFlatMap // two streams
	CoProcess // two keyed streams; with a side output
	Count     // keyed, at the end
	Alone     // counts within the source's vertex, which is the only one
)

// Keyed says whether the vertex has keyed state.
func (k Kind) Keyed() bool { return k == Process || k == CoProcess || k == Count }

func (k Kind) ports() int {
	switch k {
	case Source:
		return 0
	case CoMap, CoFlatMap, CoProcess:
		return 2
	}
	return 1
}

// Input is an edge from an output of an earlier vertex.
type Input struct {
	From int  // index of the node
	Side bool // its side output
	Edge jobgraph.Partitioning
}

// Node is a vertex of the graph.
type Node struct {
	Index       int
	Name        string
	Kind        Kind
	Ports       [][]Input // several inputs of a port are a union
	Parallelism int
	Tail        bool // a map is chained to it
	Slow        bool // takes the time that the parameter sleep says
}

// Plan is a graph: sources first, producers before their consumers, [Count] or [Alone] last.
type Plan struct {
	Nodes   []Node
	Sources int
	Once    bool // copies of a broadcast record are dropped but for one
}

// output is one output of a node, while the graph is drawn.
type output struct {
	from   int
	side   bool
	weight int // records for each record of a source, at most
	read   bool
}

type drawer struct {
	rng     *rand.Rand
	plan    Plan
	outputs []output
}

// Draw draws the graph of a seed, with the parallelism of another.
func Draw(seed, widths uint64, once bool) Plan {
	d := &drawer{rng: rand.New(rand.NewPCG(seed, 1)), plan: Plan{Once: once}}
	vertices := 1 + d.rng.IntN(maxVertices)
	d.plan.Sources = 1
	if vertices > 2 {
		d.plan.Sources += d.rng.IntN(2)
	}
	for range d.plan.Sources {
		d.add(Source, nil, 1)
	}
	for len(d.plan.Nodes) < vertices-1 {
		d.middle()
	}
	d.last(vertices)
	d.plan.Nodes[d.rng.IntN(len(d.plan.Nodes))].Slow = true
	width := rand.New(rand.NewPCG(widths, 2))
	for i := range d.plan.Nodes {
		d.plan.Nodes[i].Parallelism = 1 + width.IntN(maxParallelism)
	}
	if vertices == 1 {
		d.plan.Nodes[1].Parallelism = d.plan.Nodes[0].Parallelism
	}
	return d.plan
}

// add adds a node whose outputs have at most this many records for each of a source.
func (d *drawer) add(k Kind, ports [][]Input, weight int) {
	i := len(d.plan.Nodes)
	d.plan.Nodes = append(d.plan.Nodes, Node{
		Index: i, Name: fmt.Sprintf("node-%d", i), Kind: k, Ports: ports, Tail: d.rng.IntN(3) == 0,
	})
	d.outputs = append(d.outputs, output{from: i, weight: weight})
	if k == Process || k == CoProcess {
		d.outputs = append(d.outputs, output{from: i, side: true, weight: weight})
	}
}

// middle adds a node that is neither a source nor the last.
func (d *drawer) middle() {
	k := Map + Kind(d.rng.IntN(int(CoProcess-Map)+1))
	var ports [][]Input
	total := 0
	for range k.ports() {
		var port []Input
		for range 1 + d.rng.IntN(3)/2 {
			in, weight := d.input(k)
			if len(port) > 0 && total+weight > maxWeight {
				break
			}
			port = append(port, in)
			total += weight
		}
		ports = append(ports, port)
	}
	if k == FlatMap || k == CoFlatMap {
		total *= 2
	}
	d.add(k, ports, total)
}

// input draws an edge to a node of that kind, and says how heavy it is.
func (d *drawer) input(k Kind) (Input, int) {
	o := &d.outputs[d.rng.IntN(len(d.outputs))]
	for range 3 {
		if o.read || o.weight > maxWeight/2 {
			o = &d.outputs[d.rng.IntN(len(d.outputs))]
		}
	}
	o.read = true
	in, weight := Input{From: o.from, Side: o.side, Edge: jobgraph.Hash}, o.weight
	if k.Keyed() {
		return in, weight
	}
	in.Edge = []jobgraph.Partitioning{
		jobgraph.Forward, jobgraph.Rebalance, jobgraph.Rescale, jobgraph.Broadcast, jobgraph.Custom,
	}[d.rng.IntN(5)]
	if in.Edge != jobgraph.Broadcast {
		return in, weight
	}
	switch copied := weight * maxParallelism; {
	case d.plan.Once && k.ports() == 1: // a receiver drops the copies
	case d.plan.Once || copied > maxWeight:
		in.Edge = jobgraph.Rebalance
	default:
		weight = copied
	}
	return in, weight
}

// last adds the node that counts what nobody has read.
func (d *drawer) last(vertices int) {
	if vertices == 1 {
		d.add(Alone, [][]Input{{{From: 0}}}, 0)
	} else {
		var all []Input
		for _, o := range d.outputs {
			if !o.read {
				all = append(all, Input{From: o.from, Side: o.side, Edge: jobgraph.Hash})
			}
		}
		d.add(Count, [][]Input{all}, 0)
	}
	last := &d.plan.Nodes[len(d.plan.Nodes)-1]
	last.Name, last.Tail = CountOperator, false
}

func (n Node) String() string {
	s := fmt.Sprintf("%s kind %d p=%d", n.Name, n.Kind, n.Parallelism)
	for _, port := range n.Ports {
		s += " |"
		for _, in := range port {
			s += fmt.Sprintf(" %d/%v %s", in.From, in.Side, in.Edge)
		}
	}
	return s
}
