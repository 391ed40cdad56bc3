package grpc

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/proto/controlpb"
	"github.com/weirflow/weir/rpc"
)

func deployPB(d rpc.TaskDeployment) *controlpb.Deploy {
	p := &controlpb.Deploy{
		Attempt: attemptPB(d.Attempt), JobName: d.JobName, Entrypoint: d.Entrypoint, Params: d.Params, CodeId: d.CodeID,
		GraphHash: d.GraphHash[:], GraphText: d.GraphText, Graph: graphPB(d.Graph),
		Inputs: every(d.Inputs, gatePB), Outputs: every(d.Outputs, partitionPB), Options: taskOptionsPB(d.Options),
		Directory: d.Directory, RestoredFrom: int64(d.RestoredFrom), Restore: every(d.Restore, operatorStatePB),
		Recovered: every(d.Recovered, recoveredPB), Finished: d.Finished,
	}
	for source, splits := range d.Splits {
		p.Splits = append(p.Splits, &controlpb.Splits{Source: source, Splits: splits})
	}
	slices.SortFunc(p.Splits, func(a, b *controlpb.Splits) int { return strings.Compare(a.Source, b.Source) })
	return p
}

func deployOf(p *controlpb.Deploy) (d rpc.TaskDeployment, err error) {
	if d.Attempt, err = attemptOf(p.GetAttempt()); err != nil {
		return d, err
	}
	if d.GraphHash, err = digestOf(p.GetGraphHash()); err != nil {
		return d, err
	}
	if d.Graph, err = graphOf(p.GetGraph()); err != nil {
		return d, err
	}
	if int(d.Attempt.Vertex) >= len(d.Graph.Vertices) {
		return d, fmt.Errorf("deployment names vertex %d of %d", d.Attempt.Vertex, len(d.Graph.Vertices))
	}
	if d.Inputs, err = each(p.GetInputs(), gateOf); err != nil {
		return d, fmt.Errorf("inputs: %w", err)
	}
	if d.Outputs, err = each(p.GetOutputs(), partitionOf); err != nil {
		return d, fmt.Errorf("outputs: %w", err)
	}
	if d.Restore, err = each(p.GetRestore(), operatorStateOf); err != nil {
		return d, fmt.Errorf("restored state: %w", err)
	}
	if d.Recovered, err = recoveredOf(p.GetRecovered(), d.Inputs); err != nil {
		return d, fmt.Errorf("recovered channels: %w", err)
	}
	d.JobName, d.Entrypoint, d.Params, d.CodeID = p.GetJobName(), p.GetEntrypoint(), p.GetParams(), p.GetCodeId()
	d.GraphText, d.Directory = p.GetGraphText(), p.GetDirectory()
	d.Options = taskOptionsOf(p.GetOptions())
	d.RestoredFrom, d.Finished = weir.CheckpointID(p.GetRestoredFrom()), p.GetFinished()
	if len(p.GetSplits()) > 0 {
		d.Splits = make(map[string][][]byte, len(p.GetSplits()))
		for _, s := range p.GetSplits() {
			d.Splits[s.GetSource()] = s.GetSplits()
		}
	}
	return d, nil
}

func recoveredPB(r rpc.RecoveredChannel) *controlpb.RecoveredChannel {
	return &controlpb.RecoveredChannel{
		Gate: int32(r.Gate), Producer: r.Producer, Consumer: r.Consumer, Channel: int32(r.Channel), Filter: r.Filter,
		Captured: every(r.Captured, handlePB),
	}
}

// recoveredOf checks that each names a gate of the task, and a channel of the gate or
// none.
func recoveredOf(list []*controlpb.RecoveredChannel, gates []rpc.InputGate) ([]rpc.RecoveredChannel, error) {
	return each(list, func(p *controlpb.RecoveredChannel) (r rpc.RecoveredChannel, err error) {
		gate, channel := int(p.GetGate()), int(p.GetChannel())
		if gate < 0 || gate >= len(gates) {
			return r, fmt.Errorf("gate %d of %d", gate, len(gates))
		}
		if channel < -1 || channel >= len(gates[gate].Channels) || p.GetProducer() < 0 || p.GetConsumer() < 0 {
			return r, fmt.Errorf("channel %d of %d for data from subtask %d to %d", channel, len(gates[gate].Channels), p.GetProducer(), p.GetConsumer())
		}
		r = rpc.RecoveredChannel{Gate: gate, Producer: p.GetProducer(), Consumer: p.GetConsumer(), Channel: channel, Filter: p.GetFilter()}
		r.Captured, err = each(p.GetCaptured(), handleOf)
		return r, err
	})
}

func locationPB(l rpc.Location) *controlpb.Location {
	return &controlpb.Location{TaskManager: l.TaskManager[:], Incarnation: uint64(l.Incarnation), DataAddress: l.DataAddress}
}

func locationOf(p *controlpb.Location) (rpc.Location, error) {
	id, err := id16("task manager id", p.GetTaskManager())
	return rpc.Location{TaskManager: weir.TaskManagerID(id), Incarnation: weir.Incarnation(p.GetIncarnation()), DataAddress: p.GetDataAddress()}, err
}

func gatePB(g rpc.InputGate) *controlpb.InputGate {
	return &controlpb.InputGate{Edge: int32(g.Edge), Partitioning: uint32(g.Partitioning), Channels: every(g.Channels, func(c rpc.InputChannel) *controlpb.InputChannel {
		return &controlpb.InputChannel{Producer: attemptPB(c.Producer), Subpartition: int32(c.Subpartition), At: locationPB(c.At)}
	})}
}

func gateOf(p *controlpb.InputGate) (g rpc.InputGate, err error) {
	g.Edge = int(p.GetEdge())
	if g.Partitioning, err = enum("partitioning", p.GetPartitioning(), jobgraph.Custom); err != nil {
		return g, err
	}
	g.Channels, err = each(p.GetChannels(), func(c *controlpb.InputChannel) (rpc.InputChannel, error) {
		a, err := attemptOf(c.GetProducer())
		if err != nil {
			return rpc.InputChannel{}, err
		}
		if c.GetSubpartition() < 0 {
			return rpc.InputChannel{}, fmt.Errorf("channel names subpartition %d", c.GetSubpartition())
		}
		at, err := locationOf(c.GetAt())
		return rpc.InputChannel{Producer: a, Subpartition: int(c.GetSubpartition()), At: at}, err
	})
	return g, err
}

func partitionPB(r rpc.ResultPartition) *controlpb.ResultPartition {
	return &controlpb.ResultPartition{
		Edge: int32(r.Edge), Partitioning: uint32(r.Partitioning), MaxParallelism: int32(r.MaxParallelism), Aligns: r.Aligns,
		Consumers: every(r.Consumers, func(c rpc.Consumer) *controlpb.Consumer {
			return &controlpb.Consumer{Attempt: attemptPB(c.Attempt), At: locationPB(c.At)}
		}),
	}
}

func partitionOf(p *controlpb.ResultPartition) (r rpc.ResultPartition, err error) {
	r.Edge, r.MaxParallelism, r.Aligns = int(p.GetEdge()), int(p.GetMaxParallelism()), p.GetAligns()
	if r.MaxParallelism < 1 || r.MaxParallelism > weir.MaxMaxParallelism {
		return r, fmt.Errorf("partition has %d key groups", r.MaxParallelism)
	}
	if r.Partitioning, err = enum("partitioning", p.GetPartitioning(), jobgraph.Custom); err != nil {
		return r, err
	}
	r.Consumers, err = each(p.GetConsumers(), func(c *controlpb.Consumer) (rpc.Consumer, error) {
		a, err := attemptOf(c.GetAttempt())
		if err != nil {
			return rpc.Consumer{}, err
		}
		at, err := locationOf(c.GetAt())
		return rpc.Consumer{Attempt: a, At: at}, err
	})
	return r, err
}

func taskOptionsPB(o rpc.TaskOptions) *controlpb.TaskOptions {
	return &controlpb.TaskOptions{
		BufferTimeout: int64(o.BufferTimeout), ExclusiveBuffers: int32(o.ExclusiveBuffers), FloatingBuffers: int32(o.FloatingBuffers),
		BuffersPerOutput: int32(o.BuffersPerOutput), OverdraftBuffers: int32(o.OverdraftBuffers),
		Checkpointing: o.Checkpointing, AtLeastOnce: o.AtLeastOnce, CheckpointsAfterTasksFinish: o.CheckpointsAfterTasksFinish,
		StateBackend: o.StateBackend, InlineThreshold: int32(o.InlineThreshold), ObjectReuse: o.ObjectReuse,
		Unaligned: o.Unaligned, ChannelStateSubtasks: int32(o.ChannelStateSubtasks), ChannelStateMemory: o.ChannelStateMemory,
		Debloat: &controlpb.Debloat{
			Enabled: o.Debloat.Enabled, Period: int64(o.Debloat.Period), Target: int64(o.Debloat.Target),
			Samples: int32(o.Debloat.Samples), Threshold: int32(o.Debloat.Threshold),
		},
	}
}

func taskOptionsOf(p *controlpb.TaskOptions) rpc.TaskOptions {
	return rpc.TaskOptions{
		BufferTimeout: time.Duration(p.GetBufferTimeout()), ExclusiveBuffers: int(p.GetExclusiveBuffers()), FloatingBuffers: int(p.GetFloatingBuffers()),
		BuffersPerOutput: int(p.GetBuffersPerOutput()), OverdraftBuffers: int(p.GetOverdraftBuffers()),
		Checkpointing: p.GetCheckpointing(), AtLeastOnce: p.GetAtLeastOnce(), CheckpointsAfterTasksFinish: p.GetCheckpointsAfterTasksFinish(),
		StateBackend: p.GetStateBackend(), InlineThreshold: int(p.GetInlineThreshold()), ObjectReuse: p.GetObjectReuse(),
		Unaligned: p.GetUnaligned(), ChannelStateSubtasks: int(p.GetChannelStateSubtasks()), ChannelStateMemory: p.GetChannelStateMemory(),
		Debloat: rpc.DebloatOptions{
			Enabled: p.GetDebloat().GetEnabled(), Period: time.Duration(p.GetDebloat().GetPeriod()), Target: time.Duration(p.GetDebloat().GetTarget()),
			Samples: int(p.GetDebloat().GetSamples()), Threshold: int(p.GetDebloat().GetThreshold()),
		},
	}
}

func graphPB(g jobgraph.JobGraph) *controlpb.JobGraph {
	return &controlpb.JobGraph{
		Name: g.Name, Hash: g.Hash[:],
		Vertices: every(g.Vertices, func(v jobgraph.Vertex) *controlpb.JobVertex {
			return &controlpb.JobVertex{
				Name: v.Name, Operators: v.Operators, Source: v.Source, Keyed: v.Keyed, Parallelism: int32(v.Parallelism),
				MaxParallelism: int32(v.MaxParallelism), MaxConfigured: v.MaxConfigured,
				Inputs: ints[int, int32](v.Inputs), Outputs: ints[int, int32](v.Outputs),
			}
		}),
		Edges: every(g.Edges, func(e jobgraph.Edge) *controlpb.JobEdge {
			return &controlpb.JobEdge{
				From: int32(e.From), To: int32(e.To), FromOperator: e.FromOperator, ToOperator: e.ToOperator, Partitioning: uint32(e.Partitioning),
				Input: int32(e.Input), Side: e.Side,
			}
		}),
	}
}

func graphOf(p *controlpb.JobGraph) (g jobgraph.JobGraph, err error) {
	if g.Hash, err = digestOf(p.GetHash()); err != nil {
		return g, err
	}
	g.Name = p.GetName()
	for i, v := range p.GetVertices() {
		if v.GetParallelism() < 1 || v.GetParallelism() > v.GetMaxParallelism() || v.GetMaxParallelism() > weir.MaxMaxParallelism || len(v.GetOperators()) == 0 {
			return g, fmt.Errorf("vertex %d has %d operators, parallelism %d of at most %d", i, len(v.GetOperators()), v.GetParallelism(), v.GetMaxParallelism())
		}
		g.Vertices = append(g.Vertices, jobgraph.Vertex{
			Index: i, Name: v.GetName(), Operators: v.GetOperators(), IDs: every(v.GetOperators(), weir.OperatorIDOf),
			Source: v.GetSource(), Keyed: v.GetKeyed(), Parallelism: int(v.GetParallelism()), MaxParallelism: int(v.GetMaxParallelism()),
			MaxConfigured: v.GetMaxConfigured(), Inputs: ints[int32, int](v.GetInputs()), Outputs: ints[int32, int](v.GetOutputs()),
		})
	}
	inRange := func(i int32) bool { return i >= 0 && int(i) < len(g.Vertices) }
	for i, e := range p.GetEdges() {
		part, err := enum("partitioning", e.GetPartitioning(), jobgraph.Custom)
		if err != nil || !inRange(e.GetFrom()) || !inRange(e.GetTo()) || e.GetInput() < 0 {
			return g, fmt.Errorf("edge %d leads from vertex %d to input %d of %d by partitioning %d", i, e.GetFrom(), e.GetInput(), e.GetTo(), e.GetPartitioning())
		}
		g.Edges = append(g.Edges, jobgraph.Edge{
			Index: i, From: int(e.GetFrom()), To: int(e.GetTo()), FromOperator: e.GetFromOperator(), ToOperator: e.GetToOperator(), Partitioning: part,
			Input: int(e.GetInput()), Side: e.GetSide(),
		})
	}
	for i, v := range g.Vertices {
		for _, e := range slices.Concat(v.Inputs, v.Outputs) {
			if e < 0 || e >= len(g.Edges) {
				return g, fmt.Errorf("vertex %d names edge %d of %d", i, e, len(g.Edges))
			}
		}
	}
	return g, nil
}
