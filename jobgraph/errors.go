package jobgraph

import (
	"errors"
	"fmt"
)

// ErrInvalid is wrapped by every fault that [Logical.Validate] or [Compile] finds
// in a graph. Faults are joined, so that a user sees all of them at once.
var ErrInvalid = errors.New("invalid graph")

// ErrMismatch is wrapped by the answer of [CheckText] for two graphs that differ.
var ErrMismatch = errors.New("graphs differ")

// faults collects what is wrong with a graph.
type faults struct{ list []error }

func (f *faults) add(format string, args ...any) {
	f.list = append(f.list, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
}

func (f *faults) operator(name, format string, args ...any) {
	f.add("operator %q: %s", name, fmt.Sprintf(format, args...))
}

func (f *faults) err() error { return errors.Join(f.list...) }
