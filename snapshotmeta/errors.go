package snapshotmeta

import "errors"

// Errors of reading.
var (
	// ErrNotSnapshot: the file does not begin as one of ours does.
	ErrNotSnapshot = errors.New("not a snapshot")
	// ErrNewerVersion: a later version of the program wrote it.
	ErrNewerVersion = errors.New("written by a newer version")
	// ErrTruncated: the file ends too early.
	ErrTruncated = errors.New("cut off")
	// ErrCorrupt: the bytes are not those that were written.
	ErrCorrupt = errors.New("corrupt")
	// ErrForeign: the handle lies in a store that cannot be opened here.
	ErrForeign = errors.New("in another store")
	// ErrNotFound: there is no snapshot at the path.
	ErrNotFound = errors.New("no snapshot there")
)

// Errors of writing.
var (
	// ErrTooLarge: a part is larger than the format allows.
	ErrTooLarge = errors.New("too large for a snapshot")
	// ErrInvalid: the snapshot contradicts itself; only a bug makes one.
	ErrInvalid = errors.New("invalid snapshot")
)
