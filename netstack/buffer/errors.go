package buffer

import "errors"

// Errors of pools.
var (
	// ErrInsufficientBuffers is returned when a pool is made whose smallest size is
	// not left in the budget.
	ErrInsufficientBuffers = errors.New("insufficient network buffers")
	// ErrLeaked is returned by NetworkPool.Close if buffers have not come back.
	ErrLeaked = errors.New("network buffers leaked")
	// ErrClosed is returned when a pool is made after NetworkPool.Close.
	ErrClosed = errors.New("network pool closed")
)
