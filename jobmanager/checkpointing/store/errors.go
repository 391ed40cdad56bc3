package store

import "errors"

var (
	// ErrExists: a _metadata file of this checkpoint, with other content, is there.
	ErrExists = errors.New("another _metadata is there")
	// ErrDiffers: what was read back is not what was written.
	ErrDiffers = errors.New("read back other bytes than were written")
	// ErrLinked: the snapshot's files cannot be deleted, for it is or may become a link.
	ErrLinked = errors.New("snapshot is or may be in the chain")
	// ErrBadClaim: the file is not a claim, or damaged, or of a newer version. Nobody
	// claims the snapshot until somebody has looked at it.
	ErrBadClaim = errors.New("bad claim")
)
