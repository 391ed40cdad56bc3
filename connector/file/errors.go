package file

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir"
)

// When a job starts.
var (
	// ErrNoInput is wrapped when nothing matches the input.
	ErrNoInput = errors.New("no input file")
	// ErrBadOptions is wrapped when options cannot be.
	ErrBadOptions = errors.New("bad options of a file connector")
)

// While it runs.
var (
	// ErrLineTooLong is wrapped when a line exceeds the bound.
	ErrLineTooLong = errors.New("line too long")
	// ErrChanged is wrapped when an input file is shorter than it was when it was listed.
	ErrChanged = errors.New("input file changed")
	// ErrBadState is wrapped when bytes of a snapshot or an event cannot be read.
	ErrBadState = errors.New("bad state of a file connector")
	// ErrPartDamaged is wrapped when a part file that a snapshot names has another length.
	ErrPartDamaged = errors.New("part file is damaged")
)

// permanent marks an error that a restart does not mend.
func permanent(fault weir.Fault, err error) error {
	return &permanentError{weir.Failure{Message: err.Error(), Fault: fault, NoRetry: true, Subtask: -1}, err}
}

// permanentError is both a failure and the error that it came from.
type permanentError struct {
	failure weir.Failure
	cause   error
}

func (e *permanentError) Error() string { return e.cause.Error() }

func (e *permanentError) Unwrap() []error { return []error{&e.failure, e.cause} }

func badState(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadState, fmt.Sprintf(format, args...))
}
