package link

import "errors"

// Errors of connections and listeners.
var (
	// ErrClosed is returned after this end or the other closed the connection, or
	// after the listener was closed.
	ErrClosed = errors.New("connection closed")
	// ErrFrameTooLarge is returned for a frame of more than [MaxFrame] bytes.
	ErrFrameTooLarge = errors.New("frame too large")
	// ErrRefused is returned by Dial if nobody listens at the address.
	ErrRefused = errors.New("connection refused")
	// ErrAddressInUse is returned by Listen if somebody listens there already.
	ErrAddressInUse = errors.New("address in use")
)
