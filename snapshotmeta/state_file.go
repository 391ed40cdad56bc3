package snapshotmeta

import (
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
)

// DefaultInlineThreshold is how many bytes of a subtask's state, all sections
// together, travel inline in its acknowledgement.
const DefaultInlineThreshold = 20 << 10

// StateFileOptions say whose file it is and where it goes.
type StateFileOptions struct {
	Store      blobstore.Store // the checkpoint store
	Dir        string          // the job's directory in it
	Location   string          // of the checkpoint's options, for example "chk-7"
	Attempt    weir.AttemptID
	Checkpoint weir.CheckpointID
	// InlineThreshold bounds the inline bytes of all sections together; 0: none is
	// inline. See [DefaultInlineThreshold].
	InlineThreshold int
}

// StateFileWriter writes one subtask's state of one checkpoint. Sections follow one
// another: Begin, Write any number of times, End. The file is created when the first
// section does not fit inline. For one goroutine.
type StateFileWriter struct{}

// NewStateFileWriter returns a writer; nothing is opened yet.
func NewStateFileWriter(o StateFileOptions) *StateFileWriter { return &StateFileWriter{} }

// Begin starts a section. The label is for people, for example "count/keyed".
func (w *StateFileWriter) Begin(ctx context.Context, label string) error { return ErrInvalid }

// Write adds to the current section. It is an io.Writer, so that a
// statebackend.Snapshot can be written through it; ctx is that of Begin.
func (w *StateFileWriter) Write(p []byte) (int, error) { return 0, ErrInvalid }

// End ends the section and returns its handle, which is valid once Commit has
// succeeded. An empty section has the zero handle.
func (w *StateFileWriter) End() (weir.StateHandle, error) { return weir.StateHandle{}, ErrInvalid }

// Commit makes the file durable, if there is one.
func (w *StateFileWriter) Commit(ctx context.Context) error { return ErrInvalid }

// Abort drops what was written. It does nothing after Commit.
func (w *StateFileWriter) Abort() {}

// Bytes is how many bytes the sections have, inline ones included.
func (w *StateFileWriter) Bytes() int64 { return 0 }
