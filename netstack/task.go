package netstack

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// TaskIO is the outputs and inputs of one attempt, in the order of its spec.
type TaskIO struct {
	Outputs []*partition.ResultPartition
	Inputs  []*gate.InputGate

	stack *Stack
	spec  TaskSpec
	state taskState // guarded by Stack.mu
}

type taskState uint8

const (
	taskOpen taskState = iota
	taskStarted
	taskClosed
)

// OpenTask makes the outputs and inputs of a task and sets their smallest number of
// buffers aside. It refuses with buffer.ErrInsufficientBuffers if that is impossible.
func (s *Stack) OpenTask(spec TaskSpec) (*TaskIO, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if spec.Wake == nil {
		spec.Wake = func() {}
	}
	t := &TaskIO{stack: s, spec: spec}
	s.mu.Lock()
	switch {
	case s.mu.closed || !s.mu.started:
		s.mu.Unlock()
		return nil, ErrClosed
	case s.mu.tasks[spec.Attempt] != nil:
		s.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", spec.Attempt, ErrTaskExists)
	}
	s.mu.tasks[spec.Attempt] = t
	s.mu.registry.taskOpened(spec.Attempt)
	s.mu.Unlock()

	if err := t.reserve(); err != nil {
		t.Close()
		return nil, fmt.Errorf("buffers of %s: %w", spec.Attempt, err)
	}
	return t, nil
}

// reserve makes outputs and inputs with their buffers.
func (t *TaskIO) reserve() error {
	for i := range t.spec.Outputs {
		p, err := t.newPartition(i, &t.spec.Outputs[i])
		if err != nil {
			return err
		}
		t.Outputs = append(t.Outputs, p)
	}
	for i := range t.spec.Inputs {
		g, err := t.newGate(&t.spec.Inputs[i])
		if err != nil {
			return err
		}
		t.Inputs = append(t.Inputs, g)
	}
	return nil
}

func (t *TaskIO) newPartition(index int, o *OutputSpec) (*partition.ResultPartition, error) {
	n := len(o.Consumers)
	pool, err := t.stack.pool.NewLocalPool(buffer.LocalOptions{
		Min:        n + 1,
		Max:        n*t.spec.Buffers.PerOutput + 1,
		Overdraft:  t.spec.Buffers.Overdraft,
		Accounts:   n,
		PerAccount: t.spec.Buffers.PerOutput,
		Listener:   t.spec.Wake,
		Exceeds:    t.spec.Exceeds,
	})
	if err != nil {
		return nil, fmt.Errorf("output of edge %d: %w", o.Edge, err)
	}
	key := partitionKey{t.spec.Attempt, o.Edge}
	var decided func(weir.CheckpointID)
	if t.spec.Decided != nil {
		decided = func(id weir.CheckpointID) { t.spec.Decided(index, id) }
	}
	return partition.New(partition.Options{
		Partitioning:   o.Partitioning,
		Subpartitions:  n,
		MaxParallelism: o.MaxParallelism,
		Pool:           pool,
		EachRecord:     t.spec.Buffers.Timeout == 0,
		Aligns:         o.Aligns,
		PerOutput:      t.spec.Buffers.PerOutput,
		Decided:        decided,
		Released:       func() { t.stack.released(key) },
	}), nil
}

func (t *TaskIO) newGate(in *InputSpec) (*gate.InputGate, error) {
	o := gate.Options{
		Exclusive: t.spec.Buffers.Exclusive,
		Floating:  t.spec.Buffers.Floating,
		Network:   t.stack.pool,
		Wake:      t.spec.Wake,
		Urgent:    t.spec.Urgent,
	}
	for _, c := range in.Channels {
		o.Channels = append(o.Channels, gate.Channel{Producer: c.Producer, Remote: !t.stack.isLocal(c.At)})
	}
	g, err := gate.New(o)
	if err != nil {
		return nil, fmt.Errorf("input of edge %d: %w", in.Edge, err)
	}
	return g, nil
}

func (s *Stack) isLocal(at Location) bool { return at.TaskManager == s.self.id }

// Start opens the channels: from now on data flows.
func (t *TaskIO) Start() error {
	s := t.stack
	s.mu.Lock()
	if t.state != taskOpen || s.mu.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	t.state = taskStarted
	var answer []*request
	var outdated []*published
	for i, o := range t.spec.Outputs {
		a, old := s.mu.registry.publish(partitionKey{t.spec.Attempt, o.Edge}, &published{ResultPartition: t.Outputs[i], consumers: o.Consumers})
		answer, outdated = append(answer, a...), append(outdated, old...)
	}
	s.mu.Unlock()

	for _, p := range outdated {
		p.Fail(ErrFenced)
	}
	for _, q := range answer {
		s.ask(q)
	}
	select {
	case s.flushing <- struct{}{}:
	default:
	}
	for _, o := range t.spec.Outputs {
		for _, c := range o.Consumers {
			if !s.isLocal(c.At) {
				s.need(c.At, nil)
			}
		}
	}
	t.openInputs()
	return nil
}

func (t *TaskIO) openInputs() {
	for i := range t.spec.Inputs {
		in := &t.spec.Inputs[i]
		for j := range in.Channels {
			c := &in.Channels[j]
			switch {
			case !t.stack.isLocal(c.At):
				t.stack.need(c.At, &remoteInput{gate: t.Inputs[i], index: j, edge: in.Edge, spec: c, consumer: t.spec.Attempt})
			case c.At.Incarnation != t.stack.self.incarnation:
				t.Inputs[i].Fail(j, fmt.Errorf("task manager was restarted: %w", ErrFenced))
			default:
				t.openLocal(t.Inputs[i], j, in.Edge, c)
			}
		}
	}
}

func (t *TaskIO) openLocal(g *gate.InputGate, index, edge int, c *ChannelSpec) {
	t.stack.ask(&request{
		key:          partitionKey{c.Producer, edge},
		subpartition: c.Subpartition,
		consumer:     t.spec.Attempt,
		epoch:        t.spec.Attempt.Epoch,
		grant:        func(s *partition.Subpartition) { g.AttachLocal(index, s) },
		refuse:       func(_ wire.FailureCode, err error) { g.Fail(index, err) },
	})
}

// ask answers a request, or parks it until its producer is there or the time is over.
func (s *Stack) ask(q *request) {
	s.mu.Lock()
	sub, code, err := s.mu.registry.find(q)
	if sub == nil && err == nil {
		s.mu.registry.park(q)
		if q.timer == nil {
			q.timer = s.group.AfterFunc("partition-timeout", s.options.PartitionTimeout, func(context.Context) { s.expire(q) })
		}
		s.mu.Unlock()
		return
	}
	timer := q.timer
	s.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	if err != nil {
		q.refuse(code, err)
		return
	}
	q.grant(sub)
}

// expire refuses a request whose producer did not come.
func (s *Stack) expire(q *request) {
	if s.withdraw(q) {
		q.refuse(wire.CodePartitionNotFound, fmt.Errorf("%s not deployed within %s: %w", q.key.producer, s.options.PartitionTimeout, ErrPartitionNotFound))
	}
}

// withdraw takes a parked request back. It returns false if it is not parked.
func (s *Stack) withdraw(q *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.registry.unpark(q) {
		return false
	}
	q.timer.Stop()
	return true
}

// released forgets a partition whose consumers have all of it, or are gone.
func (s *Stack) released(key partitionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.registry.remove(key)
}

// ReleaseJob drops what finished tasks of the job left for their consumers.
func (s *Stack) ReleaseJob(job weir.JobID) {
	s.mu.Lock()
	left := s.mu.registry.lingering(job)
	s.mu.Unlock()
	for _, p := range left {
		p.Fail(ErrJobReleased)
	}
}

// Cancel lets nothing wait any more: an Emit that waits for a buffer returns, and
// outputs drop what is emitted. Consumers are told that the producer failed with this
// cause. Any goroutine may call it.
func (t *TaskIO) Cancel(cause error) {
	for _, o := range t.Outputs {
		o.Fail(cause)
	}
}

// Hasten makes an output that waits ask TaskSpec.Exceeds again. Any goroutine may call it.
func (t *TaskIO) Hasten() {
	for _, o := range t.Outputs {
		o.Hasten()
	}
}

// Close ends inputs and outputs, after the task's goroutine has left them. Outputs
// whose last event was broadcast stay readable until they have been read, or nobody
// has come to read them within the partition timeout; others fail their consumers.
// Idempotent.
func (t *TaskIO) Close() error {
	s := t.stack
	s.mu.Lock()
	if t.state == taskClosed {
		s.mu.Unlock()
		return nil
	}
	t.state = taskClosed
	delete(s.mu.tasks, t.spec.Attempt)
	s.mu.registry.taskClosed(t.spec.Attempt)
	for _, o := range t.spec.Outputs {
		if p := s.mu.registry.partitions[partitionKey{t.spec.Attempt, o.Edge}]; p != nil {
			p.linger = true
		}
	}
	s.mu.Unlock()

	for _, g := range t.Inputs {
		g.Close()
	}
	for _, p := range slices.Backward(t.Outputs) {
		p.Close()
		if !p.Ended() {
			s.group.AfterFunc("linger-timeout", s.options.PartitionTimeout, func(context.Context) { p.FailUnread(ErrNeverRead) })
		}
	}
	return nil
}
