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
	inside  bool   // the chain has not returned from that call
	// exited is the failure of a call that ended the task's goroutine.
	exited *weir.Failure
}

// Guard puts a guard around a chain.
func Guard(c operator.Chain, v *jobgraph.Vertex, subtask int) *Guarded {
	return &Guarded{chain: c, vertex: v, subtask: int32(subtask)}
}

// Chain is the guarded chain.
func (g *Guarded) Chain() operator.Chain { return g.chain }

// Process runs a batch.
func (g *Guarded) Process(b *operator.Batch) (err error) {
	g.enter("processing a record")
	defer g.guard(&err)
	err = g.chain.Process(b)
	g.inside = false
	return err
}

// Poll lets the source emit.
func (g *Guarded) Poll(max int) (s operator.SourceStatus, err error) {
	g.enter("polling the source")
	defer g.guard(&err)
	s, err = g.chain.Poll(max)
	g.inside = false
	if err == nil && s > operator.SourceEnd {
		err = fmt.Errorf("the reader returned source status %d; there are SourceMore, SourceEmpty and SourceEnd (%d to %d)", s, operator.SourceMore, operator.SourceEnd)
	}
	return s, err
}

// Do makes any other call on the chain; doing says which, for people.
func (g *Guarded) Do(doing string, call func(operator.Chain) error) (err error) {
	g.enter(doing)
	defer g.guard(&err)
	err = call(g.chain)
	g.inside = false
	return err
}

// Exited is the failure of a call that did not return but ended the goroutine
// (runtime.Goexit), so that nobody got its error; nil if none did.
func (g *Guarded) Exited() *weir.Failure { return g.exited }

func (g *Guarded) enter(doing string) { g.doing, g.inside = doing, true }

// guard is deferred by every call: it makes what went wrong a failure.
func (g *Guarded) guard(err *error) {
	if v := recover(); v != nil {
		*err = g.panicked(v, string(debug.Stack()))
		return
	}
	if g.inside {
		g.exited = &weir.Failure{
			Message: fmt.Sprintf("the goroutine was ended by runtime.Goexit while %s; return an error instead", g.doing),
			Fault:   weir.FaultUser, Operator: g.operator(), Subtask: g.subtask, Stack: string(debug.Stack()),
		}
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

// operator names whose code runs, as far as the chain knows.
func (g *Guarded) operator() string {
	if c, ok := g.chain.(interface{ Running() string }); ok && c.Running() != "" {
		return c.Running()
	}
	return g.vertex.Name
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
		Message: fmt.Sprintf("%s: %v", g.doing, err), Fault: weir.FaultUser, Operator: g.operator(), Subtask: g.subtask,
	}
}
