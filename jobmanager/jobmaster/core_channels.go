package jobmaster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// In-flight data of a snapshot is recovered by consumers alone (behaviour §20): what
// both ends of an old channel captured is whole elements, and its new consumers run
// them through their chains before they run. Who reads what is decided per edge, so
// it does not matter whether an operator has state of its own.

// exchange is an edge of a snapshot with what was in flight on it.
type exchange struct {
	id       weir.EdgeID
	from, to *snapshotmeta.Operator
	channels []weir.ChannelStateHandle // in the snapshot's order
}

// exchanges returns the edges of a snapshot that hold data, in its order.
func exchanges(s *snapshotmeta.Snapshot) []exchange {
	var list []exchange
	channels := slices.SortedFunc(slices.Values(s.Channels), snapshotmeta.CompareChannels)
	for start := 0; start < len(channels); {
		end := start + 1
		for end < len(channels) && channels[end].Edge == channels[start].Edge {
			end++
		}
		id := channels[start].Edge
		list = append(list, exchange{
			id: id, channels: channels[start:end],
			from: s.Operator(weir.OperatorIDOf(id.From)), to: s.Operator(weir.OperatorIDOf(id.To)),
		})
		start = end
	}
	return list
}

// edgeText names an edge for people.
func edgeText(id weir.EdgeID) string {
	if id.Input == 0 {
		return fmt.Sprintf("edge %q to %q", id.From, id.To)
	}
	return fmt.Sprintf("edge %q to input %d of %q", id.From, id.Input, id.To)
}

// edgeOf finds an edge of a snapshot in the job, or returns nil.
func edgeOf(graph *jobgraph.JobGraph, id weir.EdgeID) *jobgraph.Edge {
	for i := range graph.Edges {
		e := &graph.Edges[i]
		if e.FromOperator == id.From && e.ToOperator == id.To && e.Input == int(id.Input) {
			return e
		}
	}
	return nil
}

// checkExchange says whether a job can recover what was in flight on an edge: the edge
// is in it, its records are the same, and there is a rule for who reads them.
func checkExchange(graph *jobgraph.JobGraph, text string, s *snapshotmeta.Snapshot, x exchange) error {
	const has = "%w: it has in-flight data of the %s"
	e := edgeOf(graph, x.id)
	if e == nil || x.from == nil || x.to == nil {
		return fmt.Errorf(has+", and the job has no such edge between tasks", ErrRestore, edgeText(x.id))
	}
	if was, is := inputText(s.Header.GraphText, x.id), inputText(text, x.id); was != is {
		return fmt.Errorf(has+", whose records are not the same in the job: it was <%s>, is <%s>", ErrRestore, edgeText(x.id), was, is)
	}
	consumers := graph.Vertices[e.To].Parallelism
	if !redistributable(e.Partitioning) && consumers != x.to.Parallelism {
		return fmt.Errorf(has+", which is partitioned by %s and cannot be redistributed: parallelism of %q was %d, is %d",
			ErrRestore, edgeText(x.id), e.Partitioning, x.id.To, x.to.Parallelism, consumers)
	}
	return nil
}

// inputText is the line of a graph's canonical text about an input: who produces its
// records, by which key they are partitioned and how they are encoded.
func inputText(text string, id weir.EdgeID) string {
	prefix := fmt.Sprintf("operator %q input ", id.To)
	n := int32(0)
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			if n == id.Input {
				return strings.TrimSuffix(rest, "\n")
			}
			n++
		}
	}
	return ""
}

// redistributable says whether there is a rule for other parallelism. Forward is a wish
// for nothing: where such an edge holds data, parallelisms differed and records went
// round robin.
func redistributable(p jobgraph.Partitioning) bool {
	return p == jobgraph.Hash || p == jobgraph.Rebalance || p == jobgraph.Forward
}

// readers returns the subtasks [first, last) of the edge's consumer that recover what
// was in flight to an old consumer.
func readers(graph *jobgraph.JobGraph, e *jobgraph.Edge, x exchange, oldConsumer int) (first, last int) {
	v := &graph.Vertices[e.To]
	switch {
	case e.Partitioning == jobgraph.Hash:
		return weir.KeyedChannelReaders(x.to.MaxParallelism, x.to.Parallelism, oldConsumer, v.MaxParallelism, v.Parallelism)
	case redistributable(e.Partitioning):
		n := weir.ChannelReader(oldConsumer, v.Parallelism)
		return n, n + 1
	default: // parallelism is unchanged
		return oldConsumer, oldConsumer + 1
	}
}

// recoveredChannels returns, by subtask of a vertex, what it recovers, in order of gates,
// old consumers and old producers. flying are the exchanges of a snapshot that was found
// to fit.
func recoveredChannels(graph *jobgraph.JobGraph, vertex int, flying []exchange) [][]rpc.RecoveredChannel {
	recovered := make([][]rpc.RecoveredChannel, graph.Vertices[vertex].Parallelism)
	for gate, index := range graph.Vertices[vertex].Inputs {
		e := &graph.Edges[index]
		for _, x := range flying {
			if edgeOf(graph, x.id) == e {
				recoverExchange(graph, e, gate, x, recovered)
			}
		}
	}
	return recovered
}

// recoverExchange adds what was in flight on one edge.
func recoverExchange(graph *jobgraph.JobGraph, e *jobgraph.Edge, gate int, x exchange, recovered [][]rpc.RecoveredChannel) {
	begin := make([]int, len(recovered)) // of this gate's
	for i := range recovered {
		begin[i] = len(recovered[i])
	}
	for start := 0; start < len(x.channels); {
		c := x.channels[start]
		var captured []weir.StateHandle
		for start < len(x.channels) && x.channels[start].Consumer == c.Consumer && x.channels[start].Producer == c.Producer {
			captured = append(captured, x.channels[start].Handle)
			start++
		}
		first, last := readers(graph, e, x, int(c.Consumer))
		for n := first; n < last; n++ {
			recovered[n] = append(recovered[n], rpc.RecoveredChannel{
				Gate: gate, Producer: c.Producer, Consumer: c.Consumer, Channel: -1, Filter: last-first > 1, Captured: captured,
			})
		}
	}
	if graph.Vertices[e.From].Parallelism != x.from.Parallelism {
		return
	}
	for n := range recovered {
		replace(graph, e, n, recovered[n][begin[n]:])
	}
}

// replace finds the channels of consumer n that take the place of old ones: those of
// whose producer it recovers one stream. Several would have watermarks of their own,
// and one of them would make records of the next late.
func replace(graph *jobgraph.JobGraph, e *jobgraph.Edge, n int, recovered []rpc.RecoveredChannel) {
	streams := make(map[int32]int, len(recovered))
	for i := range recovered {
		streams[recovered[i].Producer]++
	}
	first, last := producersOf(graph, e, n)
	for i := range recovered {
		p := int(recovered[i].Producer)
		if streams[recovered[i].Producer] == 1 && p >= first && p < last {
			recovered[i].Channel = p - first
		}
	}
}

// KeepApart names the operators that a compiled job would run in their producer's task,
// though the snapshot has in-flight data of the edge between them: it was taken when
// their parallelisms differed. They have to start a chain.
func KeepApart(graph *jobgraph.JobGraph, s *snapshotmeta.Snapshot) []string {
	at := vertexOf(graph)
	var apart []string
	for _, x := range exchanges(s) {
		from, ok := at[weir.OperatorIDOf(x.id.From)]
		to, too := at[weir.OperatorIDOf(x.id.To)]
		if ok && too && from == to && edgeOf(graph, x.id) == nil && !slices.Contains(apart, x.id.To) {
			apart = append(apart, x.id.To)
		}
	}
	return apart
}
