package jobgraph

import (
	"slices"
	"strings"

	"github.com/weirflow/weir"
)

// Options are the physical wishes of a submission.
type Options struct {
	Name            string // the job's name; default: the entry point's
	Parallelism     int    // of operators that name none; default 1
	MaxParallelism  int    // of operators that name none; 0: derived from the parallelism
	DisableChaining bool   // every operator becomes a vertex of its own
}

// Compile makes the physical plan. Operators are chained where that is possible
// and wanted: over an edge without a partitioning wish, between operators of equal
// parallelism, into a consumer that has no other input and does not ask to start a
// chain. An edge without a wish is Forward between equal parallelisms, else
// Rebalance; every other partitioning allows any two. All faults are joined and wrap
// [ErrInvalid].
func Compile(l *Logical, o Options) (*JobGraph, error) {
	c := compiler{logical: l, options: o, at: make(map[string]int)}
	l.validate(&c.faults)
	c.checkOptions()
	if err := c.faults.err(); err != nil {
		return nil, err
	}
	c.graph = &JobGraph{Name: o.Name, Hash: l.Digest()}
	if o.Name == "" {
		c.graph.Name = l.Entrypoint
	}
	for i := range l.Operators {
		c.place(&l.Operators[i])
	}
	for i := range c.graph.Vertices {
		c.finish(&c.graph.Vertices[i])
	}
	if err := c.faults.err(); err != nil {
		return nil, err
	}
	return c.graph, nil
}

type compiler struct {
	logical *Logical
	options Options
	graph   *JobGraph
	at      map[string]int // operator's name to index of its vertex
	faults  faults
}

func (c *compiler) checkOptions() {
	for _, v := range []struct {
		what string
		n    int
	}{{"parallelism", c.options.Parallelism}, {"maximum parallelism", c.options.MaxParallelism}} {
		if v.n < 0 || v.n > weir.MaxMaxParallelism {
			c.faults.add("%s %d of the job is not in 1 to %d", v.what, v.n, weir.MaxMaxParallelism)
		}
	}
}

// place puts an operator into its producer's vertex or into a new one.
func (c *compiler) place(o *Operator) {
	p := c.parallelism(o)
	if v := c.chainTo(o, p); v >= 0 {
		c.add(&c.graph.Vertices[v], o)
		return
	}
	v := Vertex{
		Index:       len(c.graph.Vertices),
		Source:      o.Kind == KindSource,
		Keyed:       slices.ContainsFunc(o.Inputs, func(in Input) bool { return in.Partitioning == Hash }),
		Parallelism: p,
	}
	c.graph.Vertices = append(c.graph.Vertices, v)
	c.add(&c.graph.Vertices[v.Index], o)
	for i := range o.Inputs {
		c.connect(o, i, v.Index, p)
	}
}

// chainTo returns the vertex that the operator may be fused into, or -1.
func (c *compiler) chainTo(o *Operator, parallelism int) int {
	if c.options.DisableChaining || o.Chaining != ChainAuto || len(o.Inputs) != 1 || o.Inputs[0].Partitioning != Forward {
		return -1
	}
	from := o.Inputs[0].From
	v := &c.graph.Vertices[c.at[from]]
	if v.Parallelism != parallelism || c.logical.Operator(from).Chaining == ChainNever {
		return -1
	}
	if o.MaxParallelism != 0 && v.MaxConfigured && o.MaxParallelism != v.MaxParallelism {
		return -1
	}
	return v.Index
}

func (c *compiler) add(v *Vertex, o *Operator) {
	v.Operators = append(v.Operators, o.Name)
	v.IDs = append(v.IDs, weir.OperatorIDOf(o.Name))
	if o.MaxParallelism != 0 {
		v.MaxParallelism, v.MaxConfigured = o.MaxParallelism, true
	}
	c.at[o.Name] = v.Index
}

// connect adds the edge of one input of a vertex's head.
func (c *compiler) connect(o *Operator, input, to, parallelism int) {
	in := &o.Inputs[input]
	from := c.at[in.From]
	e := Edge{
		Index: len(c.graph.Edges), From: from, To: to, FromOperator: in.From, ToOperator: o.Name,
		Input: input, Side: in.Side, Partitioning: in.Partitioning,
	}
	if e.Partitioning == Forward && c.graph.Vertices[from].Parallelism != parallelism {
		e.Partitioning = Rebalance
	}
	c.graph.Edges = append(c.graph.Edges, e)
	c.graph.Vertices[from].Outputs = append(c.graph.Vertices[from].Outputs, e.Index)
	c.graph.Vertices[to].Inputs = append(c.graph.Vertices[to].Inputs, e.Index)
}

// finish settles what depends on all operators of a vertex.
func (c *compiler) finish(v *Vertex) {
	v.Name = strings.Join(v.Operators, " -> ")
	if !v.MaxConfigured && c.options.MaxParallelism != 0 {
		v.MaxParallelism, v.MaxConfigured = c.options.MaxParallelism, true
	}
	if !v.MaxConfigured {
		v.MaxParallelism = weir.DefaultMaxParallelism(v.Parallelism)
	}
	if v.Parallelism > v.MaxParallelism {
		for _, name := range v.Operators {
			c.faults.operator(name, "parallelism %d is above the maximum parallelism %d", v.Parallelism, v.MaxParallelism)
		}
	}
}

func (c *compiler) parallelism(o *Operator) int {
	switch {
	case o.Parallelism != 0:
		return o.Parallelism
	case c.options.Parallelism != 0:
		return c.options.Parallelism
	}
	return 1
}

// Operator returns the operator of this name, or nil.
func (l *Logical) Operator(name string) *Operator {
	for i := range l.Operators {
		if l.Operators[i].Name == name {
			return &l.Operators[i]
		}
	}
	return nil
}
