package chain

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// Blamer is a chain that knows which of its operators was running when a call
// panicked.
type Blamer interface{ Running() string }

// Guarded is a chain whose errors and panics are failures that name the operator
// and the subtask. Every error that it returns is a [*weir.Failure]. It is for the
// task's goroutine.
type Guarded struct {
	chain   operator.Chain
	vertex  *jobgraph.Vertex
	subtask int32
	doing   string // the call that runs now, for people
}

// Guard puts a guard around a chain.
func Guard(c operator.Chain, v *jobgraph.Vertex, subtask int) *Guarded {
	return &Guarded{chain: c, vertex: v, subtask: int32(subtask)}
}

// Chain is the guarded chain.
func (g *Guarded) Chain() operator.Chain { return g.chain }

// Process runs a batch.
func (g *Guarded) Process(b *operator.Batch) (err error) {
	g.doing = "processing a record"
	defer g.guard(&err)
	return g.chain.Process(b)
}

// Poll lets the source emit.
func (g *Guarded) Poll(max int) (s operator.SourceStatus, err error) {
	g.doing = "polling the source"
	defer g.guard(&err)
	return g.chain.Poll(max)
}

// Do makes any other call on the chain; doing says which, for people.
func (g *Guarded) Do(doing string, call func(operator.Chain) error) (err error) {
	g.doing = doing
	defer g.guard(&err)
	return call(g.chain)
}

// guard is deferred by every call: it makes what went wrong a failure.
func (g *Guarded) guard(err *error) {
	if v := recover(); v != nil {
		*err = g.panicked(v, string(debug.Stack()))
		return
	}
	if *err != nil {
		*err = g.failed(*err)
	}
}

// panicked is the failure of a panic. A false assertion is our own bug.
func (g *Guarded) panicked(v any, stack string) *weir.Failure {
	f := &weir.Failure{
		Message: fmt.Sprintf("panic while %s: %v", g.doing, v), Fault: weir.FaultUser,
		Operator: g.blame(), Subtask: g.subtask, Stack: stack,
	}
	if _, ours := v.(*assert.Failure); ours {
		f.Fault = weir.FaultSystem
	}
	return f
}

// failed is the failure of an error; one that is a failure already only learns the
// subtask, and the operator if it names none.
func (g *Guarded) failed(err error) *weir.Failure {
	var f *weir.Failure
	if errors.As(err, &f) {
		own := *f
		own.Subtask = g.subtask
		if own.Operator == "" {
			own.Operator = g.blame()
		}
		return &own
	}
	return &weir.Failure{
		Message: fmt.Sprintf("%s: %v", g.doing, err), Fault: weir.FaultUser, Operator: g.blame(), Subtask: g.subtask,
	}
}

// blame names the operator that ran, or, if the chain does not know, all of them.
func (g *Guarded) blame() string {
	if b, ok := g.chain.(Blamer); ok {
		if name := b.Running(); name != "" {
			return name
		}
	}
	return g.vertex.Name
}
