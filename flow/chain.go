package flow

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// chain is the fused operators of one task.
type chain struct {
	run
	vertex  *jobgraph.Vertex
	graph   *jobgraph.JobGraph
	nodes   []*node // head first
	program *program
	outputs []operator.Output
	heads   []headFunc // for chains with inputs, by Batch.Input
	ended   []bool     // inputs of which the end was told
	poll    pollFunc   // for chains with a source
	// told is the operator that is just being told how a checkpoint ended.
	told atomic.Pointer[string]
}

var _ operator.Chain = (*chain)(nil)

func newChain(p *program, v *jobgraph.Vertex, g *jobgraph.JobGraph) (*chain, error) {
	c := &chain{vertex: v, graph: g, program: p}
	for _, name := range v.Operators {
		n := p.nodes[name]
		if n == nil {
			return nil, fmt.Errorf("vertex %q: the job has no operator %q", v.Name, name)
		}
		if n.fused {
			return nil, fmt.Errorf("operator %q: a build of a job serves one attempt, and this one has a chain already", name)
		}
		c.nodes = append(c.nodes, n)
	}
	if len(c.nodes) == 0 {
		return nil, fmt.Errorf("vertex %d has no operators", v.Index)
	}
	if err := c.checkEdges(); err != nil {
		return nil, err
	}
	for i, n := range c.nodes {
		n.fused = true
		m := newMember(&c.run, n)
		if i > 0 {
			m.producer = c.producer(&n.inlets[0])
		}
		c.members = append(c.members, m)
	}
	return c, nil
}

// checkEdges compares the vertex's edges with the operators.
func (c *chain) checkEdges() error {
	if want := len(c.nodes[0].inlets); len(c.vertex.Inputs) != want {
		return fmt.Errorf("vertex %q has %d inputs, not %d", c.vertex.Name, want, len(c.vertex.Inputs))
	}
	for _, n := range c.nodes[1:] {
		if len(n.inlets) != 1 {
			return fmt.Errorf("vertex %q: operator %q with %d inputs cannot be chained", c.vertex.Name, n.logical.Name, len(n.inlets))
		}
	}
	for _, e := range c.vertex.Outputs {
		if e < 0 || e >= len(c.graph.Edges) || c.program.inletOf(&c.graph.Edges[e]) == nil {
			return fmt.Errorf("vertex %q: edge %d is not of this job", c.vertex.Name, e)
		}
	}
	return nil
}

// producer returns the member, among those before, whose records an operator takes:
// one that stands for a side output if it is that.
func (c *chain) producer(in *inlet) *member {
	i := slices.Index(c.nodes[:len(c.members)], in.from)
	if i < 0 {
		return nil
	}
	if in.side == "" {
		return c.members[i]
	}
	j := slices.IndexFunc(in.from.sides, func(s *sideOutput) bool { return s.name == in.side })
	return c.members[i].sides[j]
}

// Borrows implements [operator.Chain].
func (c *chain) Borrows() bool {
	return !slices.ContainsFunc(c.nodes, func(n *node) bool { return !n.borrow })
}

// Open implements [operator.Chain]: from the tail to the head, each operator is
// fused with what follows it and then opened.
func (c *chain) Open(env *operator.Env) (err error) {
	c.env, c.suspend, c.outputs = env, env.Suspend, env.Outputs
	for _, m := range c.members {
		m.start()
	}
	defer c.leave(&err)
	if len(c.outputs) != len(c.vertex.Outputs) {
		return fmt.Errorf("vertex %q has %d outputs, not %d", c.vertex.Name, len(c.vertex.Outputs), len(c.outputs))
	}
	fused := make(map[*node]any)
	for i := len(c.nodes) - 1; i >= 0; i-- {
		if fused[c.nodes[i]], err = c.openMember(c.members[i], fused); err != nil {
			return err
		}
	}
	first := fused[c.nodes[0]]
	if poll, ok := first.(pollFunc); ok {
		c.poll = poll
		return nil
	}
	c.openHeads(first)
	return nil
}

// openHeads makes the loops of the inputs: one for each port.
func (c *chain) openHeads(first any) {
	head := c.nodes[0]
	byPort := make([]headFunc, head.ports)
	for i := range byPort {
		byPort[i] = head.head(c.members[0], first, i)
	}
	for _, in := range head.logical.Inputs {
		c.heads = append(c.heads, byPort[in.Port])
	}
	c.ended = make([]bool, len(c.heads))
}

func (c *chain) openMember(m *member, fused map[*node]any) (any, error) {
	c.at = m.site
	var next any // nil for operators that nothing can follow
	if m.node.join != nil {
		next = m.node.join(c.next(m, "", fused))
	}
	for i, s := range m.node.sides {
		s.bind(m.sides[i], s.join(c.next(m, s.name, fused)))
	}
	f, err := m.node.fuse(m, next)
	if err != nil {
		m.fail(err)
		return nil, c.err
	}
	m.opened = true
	if o, ok := m.node.user.(Opener); ok {
		if err := o.Open(m.runtime); err != nil {
			m.fail(fmt.Errorf("open: %w", err))
			return nil, c.err
		}
	}
	if m.restore != nil {
		if err := m.restore(); err != nil {
			m.fail(fmt.Errorf("restore: %w", err))
			return nil, c.err
		}
	}
	return f, nil
}

// next returns what follows an output of an operator: the chained consumers and the
// outputs of the task, in the order of the graph.
func (c *chain) next(m *member, side string, fused map[*node]any) []any {
	var nexts []any
	for _, n := range c.nodes[1:] {
		if in := &n.inlets[0]; in.from == m.node && in.side == side {
			nexts = append(nexts, fused[n])
		}
	}
	for i, e := range c.vertex.Outputs {
		edge := &c.graph.Edges[e]
		if edge.FromOperator == m.node.logical.Name && edge.Side == side {
			nexts = append(nexts, c.program.inletOf(edge).write(m, c.outputs[i]))
		}
	}
	return nexts
}

// Running names the operator whose code runs, or ran last.
func (c *chain) Running() string {
	if c.at >= len(c.sites) {
		return ""
	}
	return c.sites[c.at].operator
}

// Process implements [operator.Chain].
func (c *chain) Process(b *operator.Batch) (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.leave(&err)
	c.heads[b.Input](b)
	return c.err
}

// Poll implements [operator.Chain].
func (c *chain) Poll(limit int) (status operator.SourceStatus, err error) {
	if c.err != nil {
		return operator.SourceEmpty, c.err
	}
	if c.poll == nil {
		return operator.SourceEnd, fmt.Errorf("vertex %q has no source", c.vertex.Name)
	}
	defer c.leave(&err)
	status, err = c.poll(limit)
	if err != nil {
		c.members[0].fail(err)
	}
	return status, c.err
}

// Watermark implements [operator.Chain].
func (c *chain) Watermark(w weir.Watermark) error {
	for _, o := range c.outputs {
		o.Watermark(w)
	}
	return nil
}

// Status implements [operator.Chain].
func (c *chain) Status(idle bool) error {
	for _, o := range c.outputs {
		o.Status(idle)
	}
	return nil
}

// EndOfInput implements [operator.Chain]: once all inputs of a port have ended, the
// head is told.
func (c *chain) EndOfInput(input int) error {
	if input >= len(c.ended) || c.ended[input] {
		return c.err
	}
	c.ended[input] = true
	inputs := c.nodes[0].logical.Inputs
	for i := range inputs {
		if inputs[i].Port == inputs[input].Port && !c.ended[i] {
			return c.err
		}
	}
	return c.each(func(m *member) error {
		if m != c.members[0] || m.finishPort == nil {
			return nil
		}
		return m.finishPort(inputs[input].Port)
	})
}

// each calls fn for every member, head first, until one fails.
func (c *chain) each(fn func(m *member) error) (err error) {
	if c.err != nil {
		return c.err
	}
	defer c.leave(&err)
	for _, m := range c.members {
		c.at = m.site
		if err := fn(m); err != nil {
			m.fail(err)
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

func flush(m *member) error {
	if f, ok := m.node.user.(Flusher); ok {
		return f.Flush()
	}
	return nil
}

// PrepareSnapshot implements [operator.Chain].
func (c *chain) PrepareSnapshot(weir.CheckpointID) error { return c.each(flush) }

// SnapshotState implements [operator.Chain].
func (c *chain) SnapshotState(id weir.CheckpointID) ([]operator.State, error) {
	var states []operator.State
	err := c.each(func(m *member) error {
		if l, ok := m.node.user.(SnapshotListener); ok {
			if err := l.BeforeSnapshot(id); err != nil {
				return err
			}
		}
		if m.snapshot == nil {
			return nil
		}
		elements, err := m.snapshot()
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		states = append(states, operator.State{Operator: m.id, Name: m.node.logical.Name, Elements: elements})
		return nil
	})
	return states, err
}

// NotifyComplete implements [operator.Chain].
func (c *chain) NotifyComplete(id weir.CheckpointID) error {
	return c.each(func(m *member) error {
		if l, ok := m.node.user.(CheckpointListener); ok {
			defer c.tell(m)()
			return l.NotifyComplete(id)
		}
		return nil
	})
}

// tell notes that the operator is being told, until the function that it returns is called.
func (c *chain) tell(m *member) (done func()) {
	c.told.Store(&m.node.logical.Name)
	return func() { c.told.Store(nil) }
}

// Told names the operator that is just being told how a checkpoint ended, or nobody. It may
// be called from any goroutine.
func (c *chain) Told() string {
	if name := c.told.Load(); name != nil {
		return *name
	}
	return ""
}

// NotifyAborted implements [operator.Chain].
func (c *chain) NotifyAborted(id weir.CheckpointID) error {
	return c.each(func(m *member) error {
		if l, ok := m.node.user.(AbortListener); ok {
			defer c.tell(m)()
			return l.NotifyAborted(id)
		}
		return nil
	})
}

// HandleEvent implements [operator.Chain].
func (c *chain) HandleEvent(op weir.OperatorID, event []byte) error {
	for _, m := range c.members {
		if h, ok := m.node.user.(EventHandler); ok && m.id == op {
			return c.each(func(n *member) error {
				if n == m {
					return h.HandleEvent(event)
				}
				return nil
			})
		}
	}
	return fmt.Errorf("vertex %q: no operator %s takes events", c.vertex.Name, op)
}

// Finish implements [operator.Chain].
func (c *chain) Finish() error {
	return c.each(func(m *member) error {
		if m.finish != nil {
			if err := m.finish(); err != nil || c.err != nil {
				return err
			}
		}
		if err := flush(m); err != nil {
			return err
		}
		if l, ok := m.node.user.(EndListener); ok {
			return l.EndOfData(c.env.LastCheckpoint)
		}
		return nil
	})
}

// Close implements [operator.Chain]: head first, every operator that was opened,
// whatever the others answer.
func (c *chain) Close() error {
	var faults []error
	for _, m := range c.members {
		if !m.opened {
			continue
		}
		m.opened = false
		if err := c.closeMember(m); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func (c *chain) closeMember(m *member) (err error) {
	closer, ok := m.node.user.(Closer)
	if !ok {
		return nil
	}
	c.err, c.at = nil, m.site
	defer c.leave(&err)
	if err := closer.Close(); err != nil {
		m.fail(fmt.Errorf("close: %w", err))
	}
	return c.err
}

// Counts implements [operator.Chain].
func (c *chain) Counts() []operator.Counts {
	list := make([]operator.Counts, len(c.members))
	for i, m := range c.members {
		list[i] = operator.Counts{Operator: c.nodes[i].logical.Name, RecordsIn: m.sent.in.Load(), RecordsOut: m.sent.out.Load()}
	}
	return list
}
