package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/operator"
)

// blockBytes is how much is read at a time. All lines of a block share one piece of
// memory.
const blockBytes = 64 << 10

// reader reads the splits that it was given, one after another.
type reader[T any] struct {
	options SourceOptions
	decode  func(line string) (T, error)
	runtime *flow.Runtime

	splits []span // not read to their end; the first is being read
	asked  bool   // an answer of the enumerator is on its way
	ended  bool   // the enumerator has no more

	f    *os.File
	text string // what was read of the first split, from its pos on
	read int64  // offset behind text
	buf  []byte
}

// Open implements [flow.Opener].
func (r *reader[T]) Open(rt *flow.Runtime) error {
	r.runtime = rt
	return r.options.validate()
}

// Close implements [flow.Closer].
func (r *reader[T]) Close() error { return r.closeFile() }

func (r *reader[T]) closeFile() error {
	if r.f == nil {
		return nil
	}
	f := r.f
	r.f, r.text = nil, ""
	return f.Close()
}

// AddSplits implements [flow.Reader].
func (r *reader[T]) AddSplits(encoded [][]byte) error {
	for _, b := range encoded {
		s, err := parseSpan(b)
		if err != nil {
			return err
		}
		r.splits = append(r.splits, s)
	}
	return nil
}

// Snapshot implements [flow.Reader].
func (r *reader[T]) Snapshot() ([][]byte, error) {
	encoded := make([][]byte, len(r.splits))
	for i := range r.splits {
		encoded[i] = r.splits[i].append(nil)
	}
	return encoded, nil
}

// HandleEvent implements [flow.EventHandler].
func (r *reader[T]) HandleEvent(event []byte) error {
	splits, end, err := parseAssignment(event)
	if err != nil {
		return err
	}
	r.splits = append(r.splits, splits...)
	r.asked, r.ended = false, end
	return nil
}

// Poll implements [flow.Reader].
func (r *reader[T]) Poll(emit func(ts int64, v T) bool) (operator.SourceStatus, error) {
	for len(r.splits) > 0 {
		full, err := r.readFirst(emit)
		if err != nil || full {
			return operator.SourceMore, err
		}
		if err := r.closeFile(); err != nil {
			return operator.SourceMore, err
		}
		r.splits = r.splits[1:]
	}
	switch {
	case r.ended:
		return operator.SourceEnd, nil
	case !r.asked:
		r.asked = true
		r.runtime.SendEvent([]byte{eventVersion, request})
	}
	return operator.SourceEmpty, nil
}

// readFirst emits lines of the first split until its end, or until no more may be
// emitted: then it answers true.
func (r *reader[T]) readFirst(emit func(ts int64, v T) bool) (full bool, err error) {
	s := &r.splits[0]
	if r.f == nil {
		if err := r.open(s); err != nil {
			return false, err
		}
	}
	for !s.begun {
		if err := r.findFirst(s); err != nil {
			return false, err
		}
	}
	for s.pos < s.end {
		line, n, err := r.next(s)
		if err != nil {
			return false, err
		}
		v, err := r.decode(line)
		if err != nil {
			return false, permanent(weir.FaultUser, fmt.Errorf("%s: line at byte %d: %w", s.path, s.pos, err))
		}
		s.pos += n
		if !emit(operator.NoTimestamp, v) {
			return true, nil
		}
	}
	return false, nil
}

func (r *reader[T]) open(s *span) error {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("input file on the TaskManager's host: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() < s.size {
		err = permanent(weir.FaultOutside, fmt.Errorf("%w: %s has %d bytes, it had %d when it was listed; input must stay as it is until the job has ended",
			ErrChanged, s.path, info.Size(), s.size))
	}
	if err != nil {
		f.Close()
		return err
	}
	r.f, r.text, r.read = f, "", s.pos
	if !s.begun {
		r.read = s.start - 1 // a newline there makes the split's first byte a line's
	}
	return nil
}

// findFirst looks in the next block for the first line that begins in the split. The
// line before belongs to the split before, however long it is.
func (r *reader[T]) findFirst(s *span) error {
	at := r.read
	if at >= s.end {
		s.pos, s.begun = s.end, true // no line begins here
		return nil
	}
	r.text = ""
	if err := r.more(s); err != nil {
		return err
	}
	if i := strings.IndexByte(r.text, '\n'); i >= 0 {
		s.pos, s.begun = min(at+int64(i)+1, s.size), true
		r.text = r.text[i+1:]
	}
	return nil
}

// next returns the line at pos, and its length with its end.
func (r *reader[T]) next(s *span) (line string, n int64, err error) {
	for searched := 0; ; {
		if i := strings.IndexByte(r.text[searched:], '\n'); i >= 0 {
			line = r.text[:searched+i]
			r.text = r.text[searched+i+1:]
			n = int64(len(line)) + 1
			break
		}
		searched = len(r.text)
		if searched <= r.options.MaxLineBytes+1 && r.read < s.size {
			if err := r.more(s); err != nil {
				return "", 0, err
			}
			continue
		}
		line, r.text = r.text, ""
		n = int64(len(line))
		break
	}
	line = strings.TrimSuffix(line, "\r")
	if len(line) > r.options.MaxLineBytes {
		return "", 0, permanent(weir.FaultUser, fmt.Errorf("%w: the line at byte %d of %s has more than %d bytes", ErrLineTooLong, s.pos, s.path, r.options.MaxLineBytes))
	}
	return line, n, nil
}

// more reads another block behind text. A long line is read in ever larger pieces.
func (r *reader[T]) more(s *span) error {
	want := min(int64(max(blockBytes, len(r.text))), s.size-r.read)
	have := len(r.text)
	if size := have + int(want); cap(r.buf) < size {
		r.buf = make([]byte, size)
	}
	b := r.buf[:have+int(want)]
	copy(b, r.text)
	n, err := r.f.ReadAt(b[have:], r.read)
	r.read += int64(n)
	r.text = string(b[:have+n])
	switch {
	case int64(n) == want:
		return nil
	case errors.Is(err, io.EOF):
		return permanent(weir.FaultOutside, fmt.Errorf("%w: %s ends at byte %d, it had %d when it was listed", ErrChanged, s.path, r.read, s.size))
	default:
		return fmt.Errorf("read input: %w", err)
	}
}
