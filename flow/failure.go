package flow

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// maxStackFrames bounds the stack of a failure.
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
	if f.Stack == "" && f.Fault != weir.FaultSystem {
		f.Stack = returnedBy(r.user(at)) + errorStack()
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

// user is the user's part of the operator of a site, as the job's builder gave it; nil if
// the site is a part of its own, which [site.part] names.
func (r *run) user(at int) any {
	if r.sites[at].part != "" {
		return nil
	}
	for _, m := range r.members {
		if m.site == at && m.runtime != nil {
			return m.node.user
		}
	}
	return nil
}

// returnedBy says whose code returned an error, as far as a function or the type of an
// operator tells: the function itself is not on the stack any more.
func returnedBy(user any) string {
	if user == nil {
		return ""
	}
	v := reflect.ValueOf(user)
	if v.Kind() != reflect.Func {
		return fmt.Sprintf("error returned by a method of %s\n", v.Type())
	}
	if f := runtime.FuncForPC(v.Pointer()); f != nil {
		file, line := f.FileLine(f.Entry())
		return fmt.Sprintf("error returned by %s\n\t%s:%d\n", f.Name(), file, line)
	}
	return ""
}

// userStack is the stack of the panic that is being recovered, from the panicking
// function down to the chain's entry.
func userStack() string { return stackBelow("/flow.(*run).leave") }

// errorStack is the stack of the place where an operator's error was received: the
// operators through which the record came, down to the chain's entry.
func errorStack() string { return stackBelow("/flow.(*run).fail") }

// stackBelow is the stack from below a function of ours down to the chain's entry. What
// the runtime itself puts in between, a panic, is left out.
func stackBelow(function string) string {
	pcs := make([]uintptr, 128)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var b strings.Builder
	written, below := 0, false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasSuffix(f.Function, function):
			below = true
		case !below || written == 0 && (strings.HasPrefix(f.Function, "runtime.") || strings.HasSuffix(f.Function, "/flow.(*member).fail")):
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
