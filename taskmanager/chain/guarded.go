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

// Guarded is a chain of which whatever goes wrong is a failure. A chain names the
// operator itself, as far as it can; what it does not catch is the whole vertex's.
// Every error that it returns is a [*weir.Failure]. It is for the task's goroutine.
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
		Operator: g.vertex.Name, Subtask: g.subtask, Stack: stack,
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
			own.Operator = g.vertex.Name
		}
		return &own
	}
	return &weir.Failure{
		Message: fmt.Sprintf("%s: %v", g.doing, err), Fault: weir.FaultUser, Operator: g.vertex.Name, Subtask: g.subtask,
	}
}
