package flow

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// Graph is a job under construction. The functions of this package add operators
// to it; faults are collected and reported together when the builder has returned.
type Graph struct {
	entrypoint string
	nodes      []*node
	names      map[string]bool // of operators and keys
	faults     []error
	hooks      map[string]func() operator.MasterHook
	hookNames  []string // in order of definition
}

// node is one operator of a graph: what the job graph knows of it, and the typed
// functions that fuse it, each of which asserts its argument's type once.
type node struct {
	graph   *Graph
	logical jobgraph.Operator
	inlets  []inlet // one for each of the logical inputs
	ports   int     // how many ports these are of
	sides   []*sideOutput
	borrow  bool
	fused   bool // a chain has it already
	// oneToOne says that the operator emits a record for each.
	oneToOne bool

	// user is the user's object, asked for the optional interfaces of lifecycle.go.
	user any
	// enumerator makes a source's enumerator.
	enumerator func() operator.Enumerator
	// fuse puts the operator of a member in front of next, which is a func(Out), nil for sinks; it returns a func(In), or a pollFunc for a source.
	fuse func(m *member, next any) (any, error)
	// join makes one func(Out) of several, or of none.
	join func(nexts []any) any
	// head makes the loop that decodes batches of a port for what fuse made: a func(In),
	// or a pair of them if there are two ports.
	head func(m *member, first any, port int) headFunc
}

// headFunc runs a batch from b.Next.
type headFunc func(b *operator.Batch)

// pollFunc lets a source emit.
type pollFunc func(limit int) (operator.SourceStatus, error)

func (n *node) fault(format string, args ...any) {
	n.graph.fault("operator %q: %s", n.logical.Name, fmt.Sprintf(format, args...))
}

// add adds an operator.
func (g *Graph) add(name string, kind jobgraph.Kind, options []Option) *node {
	n := &node{graph: g, logical: jobgraph.Operator{Name: name, Kind: kind}}
	g.claim(name, string(kind))
	for _, o := range options {
		o(n)
	}
	g.nodes = append(g.nodes, n)
	return n
}

func (g *Graph) fault(format string, args ...any) {
	g.faults = append(g.faults, fmt.Errorf(format, args...))
}

// claim takes a name, which must be new.
func (g *Graph) claim(name, what string) {
	switch {
	case name == "":
		g.fault("a %s needs a name", what)
	case g.names[name]:
		g.fault("operator %q: name used twice", name)
	}
	g.names[name] = true
}

// program ends the building.
func (g *Graph) program() (*program, error) {
	p := &program{logical: &jobgraph.Logical{Entrypoint: g.entrypoint, Hooks: g.hookNames}, nodes: make(map[string]*node), hooks: g.hooks}
	for _, n := range g.nodes {
		p.logical.Operators = append(p.logical.Operators, n.logical)
		p.nodes[n.logical.Name] = n
	}
	faults := errors.Join(g.faults...)
	if faults == nil {
		faults = p.logical.Validate()
	} else if len(g.nodes) == 0 {
		return nil, faults
	}
	if faults != nil {
		return nil, faults
	}
	return p, nil
}

// typeText names a type with its full package path.
func typeText(t reflect.Type) string {
	if t.Name() != "" && t.PkgPath() != "" {
		return t.PkgPath() + "." + t.Name()
	}
	return t.String()
}
