package flow

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// maxStackFrames bounds the stack of a panic in a failure.
const maxStackFrames = 32

// operatorError is a failure together with the error it was made of.
type operatorError struct {
	failure *weir.Failure
	cause   error
}

func (e *operatorError) Error() string   { return e.failure.Error() }
func (e *operatorError) Unwrap() []error { return []error{e.failure, e.cause} }

// fail keeps the first failure. An error that already is a failure keeps its words
// on whose fault it is.
func (r *run) fail(at int, err error) {
	if r.err != nil {
		return
	}
	f := weir.Failure{Message: err.Error(), Fault: r.sites[at].fault}
	if known, ok := errors.AsType[*weir.Failure](err); ok {
		f = *known
	}
	r.blame(&f, at)
	r.err = &operatorError{failure: &f, cause: err}
}

// failSystem keeps a failure that is not the user's.
func (r *run) failSystem(at int, err error) {
	r.fail(at, &weir.Failure{Message: err.Error(), Fault: weir.FaultSystem})
}

func (r *run) blame(f *weir.Failure, at int) {
	s := r.sites[at]
	if s.part != "" {
		f.Message = s.part + ": " + f.Message
	}
	if f.Operator == "" {
		f.Operator, f.Subtask = s.operator, int32(r.env.Subtask)
	}
}

// panicked turns a panic into a failure of the site that ran. It is called by the
// deferred function that recovered, so that the stack is still there.
func (r *run) panicked(v any) {
	f := &weir.Failure{Message: fmt.Sprintf("panic: %v", v), Fault: weir.FaultUser, Stack: userStack()}
	cause, _ := v.(error)
	if _, ours := v.(*assert.Failure); ours {
		f.Fault = weir.FaultSystem
	}
	r.blame(f, r.at)
	if r.err == nil {
		r.err = &operatorError{failure: f, cause: cause}
	}
}

// userStack is the stack of the panic that is being recovered, from the panicking
// function down to the chain's entry.
func userStack() string {
	pcs := make([]uintptr, 128)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var b strings.Builder
	written, panicking := 0, false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasSuffix(f.Function, "/flow.(*run).leave"):
			panicking = true // what follows is the runtime's panic, then the culprit
		case !panicking || written == 0 && strings.HasPrefix(f.Function, "runtime."):
		case written == maxStackFrames || strings.Contains(f.Function, "/flow.(*chain)."):
			return b.String()
		default:
			fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
			written++
		}
		if !more {
			return b.String()
		}
	}
}
