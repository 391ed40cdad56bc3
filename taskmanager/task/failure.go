package task

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/gate"
)

// outside is the failure of something we talk to.
func outside(format string, args ...any) *weir.Failure {
	return &weir.Failure{Message: fmt.Sprintf(format, args...), Fault: weir.FaultOutside}
}

// hopeless is a fault of the job that restarting cannot mend.
func hopeless(format string, args ...any) *weir.Failure {
	return &weir.Failure{Message: fmt.Sprintf(format, args...), Fault: weir.FaultUser, NoRetry: true}
}

// left is the failure of user code that ended the task's goroutine; nil if none did.
func (t *Task) left() error {
	if t.chain == nil || t.chain.Exited() == nil {
		return nil
	}
	return t.chain.Exited()
}

// failure says whose fault an error is that ended the task.
func (t *Task) failure(err error) *weir.Failure {
	if left := t.left(); left != nil && errors.Is(err, group.ErrExited) {
		err = left
	}
	if f, ok := errors.AsType[*weir.Failure](err); ok {
		own := *f
		own.Subtask = t.d.Attempt.Subtask
		return &own
	}
	f := &weir.Failure{Message: err.Error(), Fault: weir.FaultSystem, Subtask: t.d.Attempt.Subtask}
	if lost, ok := errors.AsType[*gate.PartitionLost](err); ok {
		f.Cause = lost.Producer
	}
	if p, ok := errors.AsType[*group.PanicError](err); ok {
		f.Stack = p.Stack
		if a, ok := p.Value.(*assert.Failure); ok {
			f.Message = a.Error()
		}
	}
	return f
}
