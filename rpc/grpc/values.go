package grpc

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/proto/controlpb"
)

// id16 checks an id from outside.
func id16(what string, b []byte) (id [16]byte, err error) {
	if len(b) != len(id) {
		return id, fmt.Errorf("%s has %d bytes, want 16", what, len(b))
	}
	copy(id[:], b)
	return id, nil
}

// enum checks an enumeration from outside: the largest known value is last.
func enum[T ~uint8](what string, v uint32, last T) (T, error) {
	if v > uint32(last) {
		return 0, fmt.Errorf("%s has the unknown value %d", what, v)
	}
	return T(v), nil
}

// each converts a slice, stopping at the first error.
func each[A, B any](in []A, f func(A) (B, error)) ([]B, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make([]B, len(in))
	for i, a := range in {
		b, err := f(a)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out[i] = b
	}
	return out, nil
}

// every converts a slice where nothing can fail.
func every[A, B any](in []A, f func(A) B) []B {
	if len(in) == 0 {
		return nil
	}
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}

func ints[A, B ~int | ~int32](in []A) []B { return every(in, func(a A) B { return B(a) }) }

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func attemptPB(a weir.AttemptID) *controlpb.Attempt {
	return &controlpb.Attempt{Job: a.Job[:], Vertex: a.Vertex, Subtask: a.Subtask, Epoch: uint64(a.Epoch), N: a.N}
}

func attemptOf(p *controlpb.Attempt) (weir.AttemptID, error) {
	job, err := id16("job id of an attempt", p.GetJob())
	if err != nil {
		return weir.AttemptID{}, err
	}
	if p.GetVertex() < 0 || p.GetSubtask() < 0 {
		return weir.AttemptID{}, fmt.Errorf("attempt names vertex %d, subtask %d", p.GetVertex(), p.GetSubtask())
	}
	return weir.AttemptID{Job: weir.JobID(job), Vertex: p.GetVertex(), Subtask: p.GetSubtask(), Epoch: weir.LeaderEpoch(p.GetEpoch()), N: p.GetN()}, nil
}

func failurePB(f *weir.Failure) *controlpb.Failure {
	if f == nil {
		return nil
	}
	p := &controlpb.Failure{Message: f.Message, Fault: uint32(f.Fault), NoRetry: f.NoRetry, Operator: f.Operator, Subtask: f.Subtask, Stack: f.Stack}
	if f.Cause != (weir.AttemptID{}) {
		p.Cause = attemptPB(f.Cause)
	}
	return p
}

func failureOf(p *controlpb.Failure) (*weir.Failure, error) {
	if p == nil {
		return nil, nil
	}
	fault, err := enum("fault", p.GetFault(), weir.FaultOutside)
	if err != nil {
		return nil, err
	}
	f := &weir.Failure{Message: p.GetMessage(), Fault: fault, NoRetry: p.GetNoRetry(), Operator: p.GetOperator(), Subtask: p.GetSubtask(), Stack: p.GetStack()}
	if p.GetCause() != nil {
		f.Cause, err = attemptOf(p.GetCause())
	}
	return f, err
}

func handlePB(h weir.StateHandle) *controlpb.Handle {
	return &controlpb.Handle{Inline: h.Inline, File: h.File, Offset: h.Offset, Length: h.Length, Crc: h.CRC, Present: !h.IsZero()}
}

func handleOf(p *controlpb.Handle) (weir.StateHandle, error) {
	h := weir.StateHandle{Inline: p.GetInline(), File: p.GetFile(), Offset: p.GetOffset(), Length: p.GetLength(), CRC: p.GetCrc()}
	if h.Offset < 0 || h.Length < 0 {
		return h, fmt.Errorf("state handle names offset %d, length %d", h.Offset, h.Length)
	}
	if p.GetPresent() && h.File == "" && h.Inline == nil {
		h.Inline = []byte{}
	}
	return h, nil
}

func keyedPB(k weir.KeyedStateHandle) *controlpb.KeyedState {
	return &controlpb.KeyedState{First: k.Range.First, Last: k.Range.Last, Backend: k.Backend, Handle: handlePB(k.Handle)}
}

func keyedOf(p *controlpb.KeyedState) (weir.KeyedStateHandle, error) {
	h, err := handleOf(p.GetHandle())
	if p.GetFirst() < 0 || p.GetLast() >= weir.MaxMaxParallelism {
		return weir.KeyedStateHandle{}, fmt.Errorf("keyed state names key groups %d to %d", p.GetFirst(), p.GetLast())
	}
	return weir.KeyedStateHandle{Range: weir.KeyGroupRange{First: p.GetFirst(), Last: p.GetLast()}, Backend: p.GetBackend(), Handle: h}, err
}

func operatorStatePB(o weir.OperatorSubtaskState) *controlpb.OperatorState {
	return &controlpb.OperatorState{
		Operator: o.Operator[:], Name: o.Name,
		Keyed:    every(o.Keyed, keyedPB),
		Elements: every(o.Elements, handlePB),
		Schemas: every(o.Schemas, func(s weir.StateSchema) *controlpb.Schema {
			return &controlpb.Schema{State: s.State, Key: s.Key, Value: s.Value}
		}),
	}
}

func operatorStateOf(p *controlpb.OperatorState) (o weir.OperatorSubtaskState, err error) {
	id, err := id16("operator id", p.GetOperator())
	if err != nil {
		return o, err
	}
	o.Operator, o.Name = weir.OperatorID(id), p.GetName()
	if o.Keyed, err = each(p.GetKeyed(), keyedOf); err != nil {
		return o, fmt.Errorf("keyed state of %s: %w", o.Name, err)
	}
	if o.Elements, err = each(p.GetElements(), handleOf); err != nil {
		return o, fmt.Errorf("elements of %s: %w", o.Name, err)
	}
	o.Schemas = every(p.GetSchemas(), func(s *controlpb.Schema) weir.StateSchema {
		return weir.StateSchema{State: s.GetState(), Key: s.GetKey(), Value: s.GetValue()}
	})
	return o, nil
}

func channelStatePB(c weir.ChannelStateHandle) *controlpb.ChannelState {
	return &controlpb.ChannelState{
		From: c.Edge.From, To: c.Edge.To, Input: c.Edge.Input, Side: uint32(c.Side), Producer: c.Producer, Consumer: c.Consumer,
		Handle: handlePB(c.Handle),
	}
}

func channelStateOf(p *controlpb.ChannelState) (c weir.ChannelStateHandle, err error) {
	c.Edge = weir.EdgeID{From: p.GetFrom(), To: p.GetTo(), Input: p.GetInput()}
	c.Producer, c.Consumer = p.GetProducer(), p.GetConsumer()
	if c.Edge.Input < 0 || c.Producer < 0 || c.Consumer < 0 {
		return c, fmt.Errorf("channel state of input %d of %q names subtasks %d and %d", c.Edge.Input, c.Edge.To, c.Producer, c.Consumer)
	}
	if c.Side, err = enum("side of a channel", p.GetSide(), weir.ProducerSide); err != nil {
		return c, err
	}
	c.Handle, err = handleOf(p.GetHandle())
	return c, err
}

func checkpointMetricsPB(m weir.CheckpointMetrics) *controlpb.CheckpointMetrics {
	return &controlpb.CheckpointMetrics{
		StartDelay: int64(m.StartDelay), AlignmentDuration: int64(m.AlignmentDuration),
		SyncDuration: int64(m.SyncDuration), AsyncDuration: int64(m.AsyncDuration),
		AlignedBytes: m.AlignedBytes, StateBytes: m.StateBytes, PersistedBytes: m.PersistedBytes,
		QueuedBytes: m.QueuedBytes, DrainRate: m.DrainRate, Unaligned: m.Unaligned,
		LastBarrier: lastBarrierPB(m.LastBarrier),
	}
}

func lastBarrierPB(b weir.LastBarrier) *controlpb.LastBarrier {
	if !b.Came {
		return nil
	}
	return &controlpb.LastBarrier{Input: b.Input, Channel: b.Channel, Queued: b.Queued}
}

func lastBarrierOf(p *controlpb.LastBarrier) weir.LastBarrier {
	return weir.LastBarrier{Came: p != nil, Input: p.GetInput(), Channel: p.GetChannel(), Queued: p.GetQueued()}
}

func checkpointMetricsOf(p *controlpb.CheckpointMetrics) weir.CheckpointMetrics {
	return weir.CheckpointMetrics{
		StartDelay: time.Duration(p.GetStartDelay()), AlignmentDuration: time.Duration(p.GetAlignmentDuration()),
		SyncDuration: time.Duration(p.GetSyncDuration()), AsyncDuration: time.Duration(p.GetAsyncDuration()),
		AlignedBytes: p.GetAlignedBytes(), StateBytes: p.GetStateBytes(), PersistedBytes: p.GetPersistedBytes(),
		QueuedBytes: p.GetQueuedBytes(), DrainRate: p.GetDrainRate(), Unaligned: p.GetUnaligned(),
		LastBarrier: lastBarrierOf(p.GetLastBarrier()),
	}
}

func barrierPB(b weir.Barrier) *controlpb.Barrier {
	return &controlpb.Barrier{
		Id: int64(b.ID), Age: int64(b.Age), Kind: uint32(b.Options.Kind), Alignment: uint32(b.Options.Alignment),
		Timeout: int64(b.Options.Timeout), Location: b.Options.Location,
	}
}

func barrierOf(p *controlpb.Barrier) (b weir.Barrier, err error) {
	kind, err := enum("snapshot kind", p.GetKind(), weir.TerminateSavepoint)
	if err != nil {
		return b, err
	}
	alignment, err := enum("alignment", p.GetAlignment(), weir.ForcedAligned)
	if err != nil {
		return b, err
	}
	if p.GetId() <= 0 {
		return b, fmt.Errorf("barrier of checkpoint %d", p.GetId())
	}
	return weir.Barrier{
		ID: weir.CheckpointID(p.GetId()), Age: time.Duration(p.GetAge()),
		Options: weir.CheckpointOptions{Kind: kind, Alignment: alignment, Timeout: time.Duration(p.GetTimeout()), Location: p.GetLocation()},
	}, nil
}

func digestOf(b []byte) (d jobgraph.Digest, err error) {
	if len(b) != len(d) {
		return d, fmt.Errorf("graph hash has %d bytes, want %d", len(b), len(d))
	}
	copy(d[:], b)
	return d, nil
}
