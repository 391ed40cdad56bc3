package jobmaster

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/rpc"
)

// deployment is everything a TaskManager needs to run the attempt. All attempts that
// it exchanges records with are placed already: regions are closed under edges.
func (c *Core) deployment(x execgraph.Execution) rpc.TaskDeployment {
	vertex := &c.spec.Graph.Vertices[x.ID.Vertex]
	d := rpc.TaskDeployment{
		Attempt: x.ID, JobName: c.spec.Name, Entrypoint: c.spec.Entrypoint, Params: c.spec.Params, CodeID: c.spec.CodeID,
		GraphHash: c.spec.Graph.Hash, GraphText: c.spec.GraphText, Graph: *c.spec.Graph,
		Options: c.spec.Settings.Task, Directory: c.spec.Directory,
	}
	for _, e := range vertex.Inputs {
		d.Inputs = append(d.Inputs, c.inputGate(&c.spec.Graph.Edges[e], x.ID.Subtask))
	}
	for _, e := range vertex.Outputs {
		d.Outputs = append(d.Outputs, c.resultPartition(&c.spec.Graph.Edges[e], x.ID.Subtask))
	}
	if c.restored != nil {
		d.RestoredFrom = c.restored.snapshot.Header.Checkpoint
		if c.restored.finished == nil {
			c.restored.finished = c.restored.finishedVertices(c.spec.Graph)
		}
		d.Finished = c.restored.finished[x.ID.Vertex]
		for _, id := range vertex.IDs {
			if share := c.restored.share(id, vertex); share != nil {
				d.Restore = append(d.Restore, share[x.ID.Subtask])
			}
		}
		d.Recovered = c.restored.channels(c.spec.Graph, x.ID.SubtaskID())
	}
	for _, s := range c.sources {
		if splits := c.splits[s.id]; s.vertex == int(x.ID.Vertex) && splits != nil {
			d.Splits = map[string][][]byte{s.name: splits[x.ID.Subtask]}
		}
	}
	return d
}

// inputGate names the subpartitions that subtask i of the edge's consumer reads.
func (c *Core) inputGate(e *jobgraph.Edge, i int32) rpc.InputGate {
	gate := rpc.InputGate{Edge: e.Index, Partitioning: e.Partitioning}
	first, last := producersOf(c.spec.Graph, e, int(i))
	for p := first; p < last; p++ {
		firstConsumer, _ := consumersOf(c.spec.Graph, e, p)
		x := c.graph.Current(weir.SubtaskID{Vertex: int32(e.From), Subtask: int32(p)})
		gate.Channels = append(gate.Channels, rpc.InputChannel{Producer: x.ID, Subpartition: int(i) - firstConsumer, At: c.location(x)})
	}
	return gate
}

// resultPartition names who reads what subtask i of the edge's producer writes.
func (c *Core) resultPartition(e *jobgraph.Edge, i int32) rpc.ResultPartition {
	part := rpc.ResultPartition{
		Edge: e.Index, Partitioning: e.Partitioning, MaxParallelism: c.spec.Graph.Vertices[e.To].MaxParallelism,
		Aligns: c.aligns[e.To],
	}
	first, last := consumersOf(c.spec.Graph, e, int(i))
	for n := first; n < last; n++ {
		x := c.graph.Current(weir.SubtaskID{Vertex: int32(e.To), Subtask: int32(n)})
		part.Consumers = append(part.Consumers, rpc.Consumer{Attempt: x.ID, At: c.location(x)})
	}
	return part
}

// producersOf returns the subtasks [first, last) that consumer i of an edge reads.
func producersOf(g *jobgraph.JobGraph, e *jobgraph.Edge, i int) (first, last int) {
	producers, consumers := g.Vertices[e.From].Parallelism, g.Vertices[e.To].Parallelism
	if e.Partitioning.Pointwise() {
		return weir.PointwiseProducers(producers, consumers, i)
	}
	return 0, producers
}

// consumersOf returns the subtasks [first, last) that read producer i of an edge, in
// the order of its subpartitions.
func consumersOf(g *jobgraph.JobGraph, e *jobgraph.Edge, i int) (first, last int) {
	producers, consumers := g.Vertices[e.From].Parallelism, g.Vertices[e.To].Parallelism
	if e.Partitioning.Pointwise() {
		return weir.PointwiseConsumers(producers, consumers, i)
	}
	return 0, consumers
}

func (c *Core) location(x execgraph.Execution) rpc.Location {
	return rpc.Location{
		TaskManager: x.At.TaskManager, Incarnation: x.At.Incarnation, DataAddress: c.addresses[taskManagerOf(x.At)],
	}
}
