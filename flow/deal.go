package flow

import "github.com/weirflow/weir/jobgraph"

// Rebalance deals the stream's records to all subtasks of the next operator in turn.
func Rebalance[T any](in Stream[T]) Stream[T] {
	return deal(in, origin{wish: jobgraph.Rebalance})
}

// Rescale deals the stream's records in turn to some subtasks of the next operator,
// so that each subtask talks to a few others only. The parallelisms need not be equal.
func Rescale[T any](in Stream[T]) Stream[T] { return deal(in, origin{wish: jobgraph.Rescale}) }

// Broadcast gives each of the stream's records to every subtask of the next operator.
func Broadcast[T any](in Stream[T]) Stream[T] { return deal(in, origin{wish: jobgraph.Broadcast}) }

// PartitionBy deals the stream's records as a function says: of a record and the
// number n of subtasks of the next operator it makes a number less than n. The name
// is for messages, and is as unique as an operator's.
func PartitionBy[T any](in Stream[T], name string, fn func(v T, n int) int) Stream[T] {
	g := in.graph()
	g.claim(name, "partitioner")
	if fn == nil {
		g.fault("partitioner %q: function is nil", name)
	}
	return deal(in, origin{wish: jobgraph.Custom, partitioner: name, route: fn})
}

// Union is a stream of the records of several streams, in no order.
func Union[T any](in Stream[T], more ...Stream[T]) Stream[T] {
	in.graph()
	all := Stream[T]{append([]origin(nil), in.origins...)}
	for _, s := range more {
		s.graph()
		all.origins = append(all.origins, s.origins...)
	}
	return all
}

// deal gives a wish to all origins of a stream, which has none yet.
func deal[T any](in Stream[T], wish origin) Stream[T] {
	g := in.graph()
	var out Stream[T]
	for _, o := range in.origins {
		if o.wish != jobgraph.Forward {
			g.fault("output of operator %q: it is to be dealt by %s and by %s", o.node.logical.Name, o.wish, wish.wish)
		}
		o.wish, o.partitioner, o.route = wish.wish, wish.partitioner, wish.route
		out.origins = append(out.origins, o)
	}
	return out
}
