package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
)

// DefaultPartBytes is the default of SinkOptions.PartBytes.
const DefaultPartBytes = 128 << 20

// bufferBytes is how much is written to a file at a time.
const bufferBytes = 64 << 10

// SinkOptions say where records go.
type SinkOptions struct {
	// Output is a directory, which is made if it is missing. All TaskManagers must see
	// it under this path, since one may publish what another has written; so must a
	// later job that starts from a snapshot of this one.
	Output string
	// PartBytes is the size from which on a file is ended and a new one begun. Files end
	// with every checkpoint too. Default 128 MiB.
	PartBytes int64
	// Suffix ends the names of files, for example ".txt".
	Suffix string
}

func (o SinkOptions) validate() error {
	var faults []error
	if o.Output == "" {
		faults = append(faults, fmt.Errorf("%w: no output directory is named", ErrBadOptions))
	}
	if o.PartBytes < 1 {
		faults = append(faults, fmt.Errorf("%w: files of %d bytes", ErrBadOptions, o.PartBytes))
	}
	if strings.ContainsAny(o.Suffix, "/\x00") || len(o.Suffix) > 32 {
		faults = append(faults, fmt.Errorf("%w: the suffix %q is not the end of a file's name", ErrBadOptions, o.Suffix))
	}
	return errors.Join(faults...)
}

// NewSink returns a sink that writes a line for each record, exactly once: what files
// named part-… hold is what completed checkpoints cover, and never changes. appendLine
// appends a record's text, without the line's end.
//
// A job without checkpoints publishes everything at the end of its data, and nothing if
// it fails before. Then nothing is exactly once: if it is started again, it writes
// everything again.
func NewSink[T any](o SinkOptions, appendLine func(b []byte, v T) []byte) flow.Sink[T] {
	if o.PartBytes == 0 {
		o.PartBytes = DefaultPartBytes
	}
	return &sink[T]{options: o, appendLine: appendLine}
}

type sink[T any] struct {
	options    SinkOptions
	appendLine func(b []byte, v T) []byte
	log        *zap.Logger

	dir   string // absolute
	names names
	f     *os.File // being written; nil: none
	buf   []byte   // not written yet
	size  int64    // of the file, with buf

	// closed are files that no snapshot names yet.
	closed []part
	// pending are those that the snapshots name which are not known to be complete;
	// ascending by snapshot.
	pending []snapshotParts
}

// snapshotParts are the files that a snapshot was the first to name.
type snapshotParts struct {
	checkpoint weir.CheckpointID
	parts      []part
}

// Open implements [flow.Opener].
func (s *sink[T]) Open(r *flow.Runtime) (err error) {
	if err := s.options.validate(); err != nil {
		return err
	}
	s.log = r.Logger()
	if s.dir, err = filepath.Abs(s.options.Output); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return fmt.Errorf("output directory: %w", err)
	}
	s.names = newNames(r, s.options.Suffix)
	return s.removeLeftovers(r)
}

// removeLeftovers removes what earlier attempts of this subtask were still writing. No
// snapshot names these files.
func (s *sink[T]) removeLeftovers(r *flow.Runtime) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("output directory: %w", err)
	}
	for _, e := range entries {
		subtask, ok := s.names.leftover(e.Name())
		if !ok || subtask%r.Parallelism() != r.Subtask() {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil && !os.IsNotExist(err) {
			s.log.Warn("cannot remove what an earlier attempt left", zap.String("file", e.Name()), zap.Error(err))
		}
	}
	return nil
}

// Write implements [flow.Sink].
func (s *sink[T]) Write(_ int64, v T) error {
	if s.f == nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	before := len(s.buf)
	s.buf = append(s.appendLine(s.buf, v), '\n')
	s.size += int64(len(s.buf) - before)
	if len(s.buf) >= bufferBytes {
		if err := s.writeOut(); err != nil {
			return err
		}
	}
	if s.size >= s.options.PartBytes {
		return s.end()
	}
	return nil
}

func (s *sink[T]) begin() (err error) {
	s.f, err = os.OpenFile(filepath.Join(s.dir, s.names.next().writing()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	s.size = 0
	return s.outputError(err)
}

func (s *sink[T]) writeOut() error {
	_, err := s.f.Write(s.buf)
	s.buf = s.buf[:0]
	return s.outputError(err)
}

// end makes the file that is being written durable and gives it the name under which
// snapshots know it.
func (s *sink[T]) end() error {
	if s.f == nil {
		return nil
	}
	if err := s.writeOut(); err != nil {
		return err
	}
	err := s.f.Sync()
	if cerr := s.f.Close(); err == nil {
		err = cerr
	}
	s.f = nil
	if err != nil {
		return s.outputError(err)
	}
	p := part{name: s.names.current, size: s.size}
	if err := os.Rename(filepath.Join(s.dir, p.name.writing()), filepath.Join(s.dir, p.name.pending())); err != nil {
		return s.outputError(err)
	}
	s.closed = append(s.closed, p)
	return nil
}

// Flush implements [flow.Flusher].
func (s *sink[T]) Flush() error {
	if s.f == nil && len(s.closed) == 0 {
		return nil
	}
	if err := s.end(); err != nil {
		return err
	}
	return s.outputError(syncDir(s.dir))
}

// BeforeSnapshot implements [flow.SnapshotListener].
func (s *sink[T]) BeforeSnapshot(id weir.CheckpointID) error {
	if len(s.closed) > 0 {
		s.pending = append(s.pending, snapshotParts{checkpoint: id, parts: s.closed})
		s.closed = nil
	}
	return nil
}

// EndOfData implements [flow.EndListener].
func (s *sink[T]) EndOfData(checkpointed bool) error {
	if checkpointed {
		return nil
	}
	parts := s.closed
	s.closed = nil
	return s.publish(parts)
}

// SnapshotState implements [flow.StateKeeper]: all files that are not known to be
// published, since the notification of an earlier checkpoint may never come.
func (s *sink[T]) SnapshotState() ([][]byte, error) {
	var elements [][]byte
	for _, c := range s.pending {
		for i := range c.parts {
			elements = append(elements, c.parts[i].append(nil))
		}
	}
	return elements, nil
}

// RestoreState implements [flow.StateKeeper]: the checkpoint that the job starts from is
// complete, so what it names is published.
func (s *sink[T]) RestoreState(elements [][]byte) error {
	var parts []part
	for _, b := range elements {
		p, err := parsePart(b)
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	return s.publish(parts)
}

// NotifyComplete implements [flow.CheckpointListener].
func (s *sink[T]) NotifyComplete(id weir.CheckpointID) error {
	for len(s.pending) > 0 && s.pending[0].checkpoint <= id {
		if err := s.publish(s.pending[0].parts); err != nil {
			return err
		}
		s.pending = s.pending[1:]
	}
	return nil
}

func (s *sink[T]) publish(parts []part) error {
	if len(parts) == 0 {
		return nil
	}
	for i := range parts {
		found, err := parts[i].publish(s.dir)
		if err != nil {
			return s.outputError(err)
		}
		if !found {
			s.log.Warn("a file that the snapshot names is neither pending nor published; it must have been published and then taken away",
				zap.String("directory", s.dir), zap.String("file", parts[i].name.final()))
		}
	}
	return s.outputError(syncDir(s.dir))
}

// Close implements [flow.Closer]. What was being written is of no use to anybody;
// other files may be named by snapshots.
func (s *sink[T]) Close() error {
	if s.f == nil {
		return nil
	}
	name := s.f.Name()
	err := s.f.Close()
	s.f = nil
	if rerr := os.Remove(name); err == nil && !os.IsNotExist(rerr) {
		err = rerr
	}
	return err
}

func (s *sink[T]) outputError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("output directory %s: %w", s.dir, err)
}

// syncDir makes a directory's entries durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
