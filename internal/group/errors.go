package group

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// ErrStopped is returned by [Group.Go] after the group was stopped, and is the
// cause with which [Group.Stop] cancels.
var ErrStopped = errors.New("group stopped")

// ErrExited is the error of a goroutine that ended by runtime.Goexit.
var ErrExited = errors.New("goroutine exited without returning")

// PanicError is a captured panic.
type PanicError struct {
	Value any
	Stack string // as debug.Stack has it, from where the panic was raised
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value that was panicked with, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// StuckError says which goroutines had not ended when the deadline of
// [Group.Stop] passed.
type StuckError struct {
	Group      string
	Goroutines []string // sorted
	Cause      error    // why Stop gave up: the cause of its context
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("group %s: still running: %s: %v", e.Group, strings.Join(e.Goroutines, ", "), e.Cause)
}

// Unwrap returns why Stop gave up.
func (e *StuckError) Unwrap() error { return e.Cause }

// Catch calls fn and returns its error, or its panic as a [*PanicError], or
// [ErrExited] if it ended the goroutine; the goroutine then still ends.
func Catch(fn func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: string(debug.Stack())}
			return
		}
		err = ErrExited
	}()
	err = fn()
	returned = true
	return err
}
