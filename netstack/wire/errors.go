package wire

import "errors"

// Errors of the decoders; what exactly is wrong stands around them.
var (
	// ErrMalformed is returned for bytes that are no frame, event or element.
	ErrMalformed = errors.New("malformed")
	// ErrVersion is returned for a Hello of another protocol or version.
	ErrVersion = errors.New("not this protocol version")
	// ErrTooLarge is returned for a length beyond its bound.
	ErrTooLarge = errors.New("too large")
)
