package snapshotmeta

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/proto/snapshotpb"
)

// A state file is magic and version, the sections' bytes without gaps, a table of
// contents and a footer:
//
//	"WEIRSTAT"       8 bytes
//	version          uint32, little-endian
//	sections
//	contents         protobuf, proto/snapshot.proto
//	contents offset  uint64, little-endian
//	contents length  uint32
//	crc32c           uint32, of magic, version and contents; sections have their own
//	"WEIRSTOC"       8 bytes
//
// Handles point at sections, so a restore needs neither contents nor footer: they
// are for finding out what a file is.
const (
	stateMagic   = "WEIRSTAT"
	stateVersion = 1
	stateEnd     = "WEIRSTOC"

	stateHeadSize = 12
	stateFootSize = 24

	writeBuffer = 64 << 10 // bytes that small writes are gathered into
)

// DefaultInlineThreshold is how many bytes of a subtask's state, all sections
// together, travel inline in its acknowledgement.
const DefaultInlineThreshold = 20 << 10

// StateFileOptions say whose file it is and where it goes.
type StateFileOptions struct {
	Store      blobstore.Store // the checkpoint store
	Dir        string          // the job's directory in it
	Location   string          // of the checkpoint's options, for example "chk-7"
	Name       string          // of the file in Dir; empty: StateFileName of Location and Attempt
	Attempt    weir.AttemptID
	Checkpoint weir.CheckpointID
	// InlineThreshold bounds the inline bytes of all sections together; 0: none is
	// inline. See [DefaultInlineThreshold].
	InlineThreshold int
}

// StateFileWriter writes one subtask's state of one checkpoint. Sections follow one
// another: Begin, Write any number of times, End. The file is created when the first
// section does not fit inline. After an error every call fails; Abort drops all. For
// one goroutine.
type StateFileWriter struct {
	o      StateFileOptions
	name   string // of the file, relative to Dir
	inline int    // bytes that ended inline
	total  int64  // bytes of all sections that ended
	err    error  // the first one; also set by Commit and Abort

	// The file, if there is one.
	blob     blobstore.Writer
	out      *bufio.Writer
	offset   int64 // of the next byte
	contents snapshotpb.Contents

	// The section between Begin and End.
	open    bool
	create  func() (blobstore.Writer, error)
	label   string
	buf     []byte // while it still may be inline
	spilled bool   // it goes to the file
	start   int64  // its offset there
	length  int64
	crc     uint32
}

// Errors of a writer's misuse.
var (
	errDone      = errors.New("state file was committed or aborted before")
	errNoSection = errors.New("no section of the state file is open")
	errSection   = errors.New("a section of the state file is open")
)

// NewStateFileWriter returns a writer; nothing is opened yet.
func NewStateFileWriter(o StateFileOptions) *StateFileWriter {
	w := &StateFileWriter{o: o, name: o.Name}
	if w.name == "" {
		w.name = StateFileName(o.Location, o.Attempt)
	}
	w.contents = snapshotpb.Contents{
		JobId: o.Attempt.Job[:], CheckpointId: int64(o.Checkpoint), Vertex: o.Attempt.Vertex, Subtask: o.Attempt.Subtask,
		LeaderEpoch: uint64(o.Attempt.Epoch), Attempt: o.Attempt.N,
	}
	return w
}

// Begin starts a section. The label is for people, for example "count/keyed". ctx is
// also that of creating the file, should a Write of the section need it.
func (w *StateFileWriter) Begin(ctx context.Context, label string) error {
	switch {
	case w.err != nil:
		return w.err
	case w.open:
		return errSection
	case ctx.Err() != nil:
		return w.fail(context.Cause(ctx))
	case len(w.contents.Sections) >= maxSections:
		return w.fail(fmt.Errorf("%w: more than %d sections", ErrTooLarge, maxSections))
	}
	w.open, w.label, w.spilled, w.length, w.crc = true, label, false, 0, 0
	w.buf = w.buf[:0]
	w.create = func() (blobstore.Writer, error) {
		return w.o.Store.Create(ctx, path.Join(w.o.Dir, w.name))
	}
	return nil
}

// Write adds to the current section. It is an io.Writer, so that a
// statebackend.Snapshot can be written through it.
func (w *StateFileWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if !w.open {
		return 0, errNoSection
	}
	w.crc = crc32.Update(w.crc, castagnoli, p)
	w.length += int64(len(p))
	if !w.spilled {
		if w.inline+len(w.buf)+len(p) <= w.o.InlineThreshold {
			w.buf = append(w.buf, p...)
			return len(p), nil
		}
		if err := w.spill(); err != nil {
			return 0, err
		}
	}
	if err := w.put(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// spill sends the section to the file, with what was buffered of it.
func (w *StateFileWriter) spill() error {
	if w.blob == nil {
		blob, err := w.create()
		if err != nil {
			return w.fail(fmt.Errorf("create state file: %w", err))
		}
		w.blob, w.out = blob, bufio.NewWriterSize(blob, writeBuffer)
		if err := w.put(binary.LittleEndian.AppendUint32([]byte(stateMagic), stateVersion)); err != nil {
			return err
		}
	}
	w.spilled, w.start = true, w.offset
	return w.put(w.buf)
}

// put writes to the file.
func (w *StateFileWriter) put(p []byte) error {
	n, err := w.out.Write(p)
	w.offset += int64(n)
	if err != nil {
		return w.fail(fmt.Errorf("write state file: %w", err))
	}
	return nil
}

// End ends the section and returns its handle, which is valid once Commit has
// succeeded. The handle of an empty section is inline, and not the zero handle.
func (w *StateFileWriter) End() (weir.StateHandle, error) {
	if w.err != nil {
		return weir.StateHandle{}, w.err
	}
	if !w.open {
		return weir.StateHandle{}, errNoSection
	}
	w.open = false
	w.total += w.length
	h := weir.StateHandle{Length: w.length, CRC: w.crc}
	if !w.spilled {
		w.inline += len(w.buf)
		h.Inline = append([]byte{}, w.buf...)
		return h, nil
	}
	h.File, h.Offset = w.name, w.start
	w.contents.Sections = append(w.contents.Sections, &snapshotpb.Section{Label: w.label, Offset: h.Offset, Length: h.Length, Crc32C: h.CRC})
	return h, nil
}

// Commit makes the file durable, if there is one.
func (w *StateFileWriter) Commit(ctx context.Context) error {
	switch {
	case w.err != nil:
		return w.err
	case w.open:
		return errSection
	}
	if w.blob == nil {
		w.err = errDone
		return nil
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.blob.Commit(ctx); err != nil {
		return w.fail(fmt.Errorf("commit state file: %w", err))
	}
	w.err = errDone
	return nil
}

// finish writes contents and footer.
func (w *StateFileWriter) finish() error {
	contents, err := proto.MarshalOptions{Deterministic: true}.Marshal(&w.contents)
	if err == nil && len(contents) > maxContents {
		err = fmt.Errorf("%w: table of contents of %d bytes, at most %d are allowed", ErrTooLarge, len(contents), maxContents)
	}
	if err != nil {
		return w.fail(fmt.Errorf("write state file: %w", err))
	}
	foot := binary.LittleEndian.AppendUint64(nil, uint64(w.offset))
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(contents)))
	foot = binary.LittleEndian.AppendUint32(foot, contentsCRC(stateVersion, contents))
	foot = append(foot, stateEnd...)
	if err := w.put(slices.Concat(contents, foot)); err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return w.fail(fmt.Errorf("write state file: %w", err))
	}
	return nil
}

// contentsCRC is the checksum in a state file's footer.
func contentsCRC(version uint32, contents []byte) uint32 {
	head := binary.LittleEndian.AppendUint32([]byte(stateMagic), version)
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, contents)
}

// Abort drops what was written. It does nothing after Commit.
func (w *StateFileWriter) Abort() {
	if w.err == nil {
		w.fail(errDone)
	}
}

// fail makes the error final and drops the file.
func (w *StateFileWriter) fail(err error) error {
	w.err = err
	if w.blob != nil {
		w.blob.Abort()
	}
	return err
}

// Bytes is how many bytes the sections that ended have, inline ones included.
func (w *StateFileWriter) Bytes() int64 { return w.total }
