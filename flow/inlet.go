package flow

import (
	"reflect"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// inlet is one input of an operator: an edge of the graph, from one output of its
// producer.
type inlet struct {
	from *node
	side string // which of the producer's side outputs; empty: the main one
	// write makes a func(In) that encodes records into the output which leads to this
	// inlet. It runs in the producer's chain.
	write func(m *member, out operator.Output) any
}

// plainPort adds the inputs that a stream without a key brings: one for each of its
// origins, all of the next port. It returns the records' codec, nil if there is none.
func plainPort[A any](n *node, in Stream[A]) *codec.Codec[A] {
	c := recordsOf[A](n)
	addPort(n, in, c, func(o origin, _ *jobgraph.Input) func(*member, operator.Output) any {
		route, routed := o.route.(func(A, int) int)
		return func(m *member, out operator.Output) any {
			if routed {
				return router(m, out, c, o.partitioner, route)
			}
			return writer(m, out, c)
		}
	})
	return c
}

// keyedPort is [plainPort] for a keyed stream.
func keyedPort[K comparable, A any](n *node, in KeyedStream[K, A]) *codec.Codec[A] {
	c := recordsOf[A](n)
	addPort(n, in.stream, c, func(_ origin, input *jobgraph.Input) func(*member, operator.Output) any {
		input.Partitioning, input.Partitioner = jobgraph.Hash, ""
		if in.keys != nil {
			input.Key = in.keys.Schema()
		}
		return func(m *member, out operator.Output) any { return keyWriter(m, out, c, in) }
	})
	return c
}

// recordsOf returns the codec of an input's records; a type without one is a fault.
func recordsOf[A any](n *node) *codec.Codec[A] {
	c, err := codec.For[A]()
	if err != nil {
		n.fault("input records: %s", err)
		return nil
	}
	return c
}

func addPort[A any](n *node, in Stream[A], c *codec.Codec[A], write func(o origin, input *jobgraph.Input) func(*member, operator.Output) any) {
	if n.logical.In != "" {
		n.logical.In += ", "
	}
	n.logical.In += typeText(reflect.TypeFor[A]())
	for _, o := range in.origins {
		input := jobgraph.Input{
			From: o.node.logical.Name, Side: o.side, Partitioning: o.wish, Partitioner: o.partitioner, Port: n.ports,
		}
		if c != nil {
			input.Codec = c.Schema()
		}
		if o.node.graph != n.graph {
			n.fault("input %q is of another graph", input.From)
		}
		in := inlet{from: o.node, side: o.side, write: write(o, &input)}
		n.logical.Inputs = append(n.logical.Inputs, input)
		n.inlets = append(n.inlets, in)
	}
	n.ports++
}
