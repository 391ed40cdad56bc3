package flow

import (
	"fmt"

	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// program is one build of a job.
type program struct {
	logical *jobgraph.Logical
	nodes   map[string]*node
	hooks   map[string]func() operator.MasterHook
}

var _ operator.Program = (*program)(nil)

// Logical implements [operator.Program].
func (p *program) Logical() *jobgraph.Logical { return p.logical }

// NewEnumerator implements [operator.Program].
func (p *program) NewEnumerator(source string) (operator.Enumerator, error) {
	n := p.nodes[source]
	if n == nil || n.enumerator == nil {
		return nil, fmt.Errorf("no source is called %q", source)
	}
	e := n.enumerator()
	if e == nil {
		return nil, fmt.Errorf("source %q has no enumerator", source)
	}
	return e, nil
}

// NewChain implements [operator.Program]. The chain is composed when it is opened.
func (p *program) NewChain(vertex *jobgraph.Vertex, graph *jobgraph.JobGraph) (operator.Chain, error) {
	return newChain(p, vertex, graph)
}

// inletOf returns the inlet that an edge leads to, or nil if it is not of this job.
func (p *program) inletOf(e *jobgraph.Edge) *inlet {
	n := p.nodes[e.ToOperator]
	if n == nil || e.Input < 0 || e.Input >= len(n.inlets) {
		return nil
	}
	in := &n.inlets[e.Input]
	if in.from.logical.Name != e.FromOperator || in.side != e.Side {
		return nil
	}
	return in
}
