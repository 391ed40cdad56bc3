package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager/barrier"
	"github.com/weirflow/weir/taskmanager/chain"
	"github.com/weirflow/weir/taskmanager/input"
	"github.com/weirflow/weir/taskmanager/snapshot"
)

// prepare makes everything that the loop needs, up to the restored state. What it made
// is given back by clean, also after an error.
func (t *Task) prepare(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Peers may look for the channels while state is restored; what they send waits.
	if err := t.io.Start(); err != nil {
		return fmt.Errorf("open channels: %w", err)
	}
	for _, p := range t.io.Outputs {
		t.outputs = append(t.outputs, &output{p: p, task: t})
	}
	program, err := t.build(ctx)
	if err != nil {
		return err
	}
	c, err := program.NewChain(t.vertex, &t.d.Graph)
	if err != nil {
		return hopeless("chain: %v", err)
	}
	t.chain = chain.Guard(c, t.vertex, int(t.d.Attempt.Subtask))
	if err := t.prepareChannels(); err != nil {
		return err
	}
	t.prepareSnapshots()
	env, err := t.env(ctx)
	if err != nil {
		return err
	}
	if err := t.chain.Do("opening", func(c operator.Chain) error { return c.Open(env) }); err != nil {
		return err
	}
	t.prepareInput()
	t.prepareDebloating()
	t.view.Store(&view{io: t.io, in: t.in, chain: c, outputs: t.outputs})
	return nil
}

// build makes the job's program and compares its graph with the one that the
// JobManager planned.
func (t *Task) build(ctx context.Context) (operator.Program, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.r.BuildTimeout, fmt.Errorf("the job's builder did not return within %v", t.r.BuildTimeout))
	defer cancel()
	program, err := t.r.Catalog.Build(ctx, t.d.Entrypoint, t.d.Params)
	switch {
	case errors.Is(err, operator.ErrUnknownEntrypoint) || errors.Is(err, operator.ErrBadParams):
		return nil, hopeless("build the job: %v", err)
	case err != nil:
		return nil, &weir.Failure{Message: fmt.Sprintf("build the job: %v", err), Fault: weir.FaultUser}
	}
	logical := program.Logical()
	if logical.Digest() == t.d.GraphHash {
		return program, nil
	}
	diff := jobgraph.Diff(t.d.GraphText, logical.Text())
	return nil, hopeless("graph mismatch: the job's builder made another graph here than in the JobManager: %s", diff)
}

// spec describes the task's channels.
func (t *Task) spec() (netstack.TaskSpec, error) {
	o := t.d.Options
	spec := netstack.TaskSpec{
		Attempt: t.d.Attempt,
		Wake:    t.awake,
		Urgent:  t.hurry,
		Exceeds: t.hastened.Load,
		Decided: t.decided,
		Buffers: netstack.BufferOptions{
			Timeout: o.BufferTimeout, Exclusive: o.ExclusiveBuffers, Floating: o.FloatingBuffers,
			PerOutput: o.BuffersPerOutput, Overdraft: o.OverdraftBuffers,
		},
	}
	for _, out := range t.d.Outputs {
		p, err := partitioning(out.Partitioning)
		if err != nil {
			return spec, err
		}
		s := netstack.OutputSpec{Edge: out.Edge, Partitioning: p, MaxParallelism: out.MaxParallelism, Aligns: out.Aligns}
		for _, c := range out.Consumers {
			s.Consumers = append(s.Consumers, netstack.Consumer{Attempt: c.Attempt, At: location(c.At)})
		}
		spec.Outputs = append(spec.Outputs, s)
	}
	for _, in := range t.d.Inputs {
		s := netstack.InputSpec{Edge: in.Edge}
		for _, c := range in.Channels {
			s.Channels = append(s.Channels, netstack.ChannelSpec{Producer: c.Producer, Subpartition: c.Subpartition, At: location(c.At)})
		}
		spec.Inputs = append(spec.Inputs, s)
	}
	return spec, nil
}

func partitioning(p jobgraph.Partitioning) (partition.Partitioning, error) {
	switch p {
	case jobgraph.Forward:
		return partition.Forward, nil
	case jobgraph.Hash:
		return partition.Hash, nil
	case jobgraph.Rebalance:
		return partition.Rebalance, nil
	case jobgraph.Rescale:
		return partition.Rescale, nil
	case jobgraph.Broadcast:
		return partition.Broadcast, nil
	case jobgraph.Custom:
		return partition.Custom, nil
	}
	return 0, fmt.Errorf("deployment with partitioning %d", p)
}

func location(l rpc.Location) netstack.Location {
	return netstack.Location{TaskManager: l.TaskManager, Incarnation: l.Incarnation, Address: l.DataAddress}
}

// prepareSnapshots makes the task's part in checkpoints.
func (t *Task) prepareSnapshots() {
	o := snapshot.Options{
		Attempt: t.d.Attempt, Restored: t.d.RestoredFrom,
		Operators: operators{t}, Outputs: barriers{t}, Reporter: reporter{t}, Executor: t.r.Executor,
		Post:  t.postWritten,
		Store: t.r.Store, Directory: t.d.Directory, InlineThreshold: t.d.Options.InlineThreshold,
		OpenStore: t.r.OpenStore,
	}
	if t.channels.writer != nil {
		o.Channels = t.channels.writer
	}
	for i, id := range t.vertex.IDs {
		o.Refs = append(o.Refs, snapshot.OperatorRef{ID: id, Name: t.vertex.Operators[i]})
	}
	if t.vertex.Source {
		o.Sources = t.vertex.IDs[:1]
	}
	t.snapshot = snapshot.New(o)
}

// prepareInput joins the input gates.
func (t *Task) prepareInput() {
	if t.vertex.Source {
		t.sourceUp.Store(true)
		return
	}
	o := input.Options{
		Borrow:           t.chain.Chain().Borrows(),
		AfterTasksFinish: t.d.Options.CheckpointsAfterTasksFinish,
		Mode:             t.mode(),
		Sink:             sink{t},
		Now:              time.Now,
	}
	for i, g := range t.io.Inputs {
		o.Gates = append(o.Gates, g)
		o.Keyed = append(o.Keyed, t.d.Inputs[i].Partitioning == jobgraph.Hash)
	}
	t.in = input.New(o)
}

// mode says how barriers are treated (behaviour §15.1).
func (t *Task) mode() barrier.Mode {
	switch {
	case t.d.Options.AtLeastOnce:
		return barrier.AtLeastOnce
	case t.d.Options.Unaligned:
		return barrier.Alternating
	}
	return barrier.Aligned
}

// env is what the operators may use.
func (t *Task) env(ctx context.Context) (*operator.Env, error) {
	own, err := t.ownState(ctx)
	if err != nil {
		return nil, err
	}
	names := map[weir.OperatorID]string{}
	for i, id := range t.vertex.IDs {
		names[id] = t.vertex.Operators[i]
	}
	env := &operator.Env{
		Job: t.d.Attempt.Job, JobName: t.d.JobName, Attempt: t.d.Attempt, Vertex: t.vertex.Name,
		Subtask: int(t.d.Attempt.Subtask), Parallelism: t.vertex.Parallelism, MaxParallelism: t.vertex.MaxParallelism,
		KeyGroups: t.keyGroups(), LastCheckpoint: t.awaitsCheckpoint(),
		Suspend: &t.suspend,
		Wake:    t.wakeSource,
		Backend: t.backends(ctx),
		Restored: func(op weir.OperatorID) ([][]byte, bool) {
			return own[op], t.d.RestoredFrom != weir.NoCheckpoint
		},
		Splits: func(op weir.OperatorID) [][]byte { return t.d.Splits[names[op]] },
		SendEvent: func(op weir.OperatorID, event []byte) {
			t.owner.Send(rpc.OperatorEvent{Attempt: t.d.Attempt, Operator: op, Event: event})
		},
		Logger:  func(name string) *zap.Logger { return t.logger.With(zap.String("operator", name)) },
		Metrics: t.userMetrics,
	}
	env.Timers = t.timerServices(env.Backend)
	for _, o := range t.outputs {
		env.Outputs = append(env.Outputs, o)
	}
	return env, nil
}

func (t *Task) keyGroups() weir.KeyGroupRange {
	return weir.KeyGroupRangeOf(t.vertex.MaxParallelism, t.vertex.Parallelism, int(t.d.Attempt.Subtask))
}

// wakeSource makes the task poll its source again.
func (t *Task) wakeSource() {
	t.sourceUp.Store(true)
	t.awake()
}
