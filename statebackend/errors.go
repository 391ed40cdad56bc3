package statebackend

import "errors"

// Errors of restore.
var (
	// ErrCorrupt is returned when the bytes of a handle are not what a backend wrote.
	ErrCorrupt = errors.New("corrupt keyed state")
	// ErrUnsupported is returned when the bytes were written by another backend, in a
	// version or with a layout that this one does not read.
	ErrUnsupported = errors.New("unsupported keyed state")
	// ErrMaxParallelism is returned when the state was written with another number of
	// key groups.
	ErrMaxParallelism = errors.New("keyed state has another maximum parallelism")
)

// Errors of Table.
var (
	// ErrDescriptor is returned when a state of that name exists with another
	// descriptor, registered or restored.
	ErrDescriptor = errors.New("state descriptor differs")
)
