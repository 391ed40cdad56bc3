package snapshotmeta

import "io"

// Write writes the snapshot as a _metadata file.
func Write(w io.Writer, s *Snapshot) error { return ErrInvalid }
