package task

import (
	"errors"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/gate"
)

// outside is an error of something we talk to.
type outside struct{ err error }

func (e *outside) Error() string { return e.err.Error() }
func (e *outside) Unwrap() error { return e.err }

// noRetry is a fault of the job that restarting cannot mend.
type noRetry struct{ err error }

func (e *noRetry) Error() string { return e.err.Error() }
func (e *noRetry) Unwrap() error { return e.err }

// failure says whose fault an error is that ended the task.
func (t *Task) failure(err error) *weir.Failure {
	if f, ok := errors.AsType[*weir.Failure](err); ok {
		return f
	}
	f := &weir.Failure{Message: err.Error(), Fault: weir.FaultSystem, Subtask: t.d.Attempt.Subtask}
	if lost, ok := errors.AsType[*gate.PartitionLost](err); ok {
		f.Cause = lost.Producer
	}
	if _, ok := errors.AsType[*outside](err); ok {
		f.Fault = weir.FaultOutside
	}
	if _, ok := errors.AsType[*noRetry](err); ok {
		f.Fault, f.NoRetry = weir.FaultUser, true
	}
	if p, ok := errors.AsType[*group.PanicError](err); ok {
		f.Stack = p.Stack
		if a, ok := p.Value.(*assert.Failure); ok {
			f.Message = a.Error()
		}
	}
	return f
}
