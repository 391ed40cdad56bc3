package heap

import "errors"

// errClosed is returned by calls on a backend that was closed.
var errClosed = errors.New("heap backend is closed")

// errReleased is returned by Write of a snapshot that was released.
var errReleased = errors.New("heap snapshot is released")
