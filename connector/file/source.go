package file

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/operator"
)

// Defaults and bounds of options.
const (
	DefaultSplitBytes   = 16 << 20
	DefaultMaxLineBytes = 1 << 20
	maxLineBytes        = 64 << 20
)

// SourceOptions say what is read.
type SourceOptions struct {
	// Input is a file, a directory, which is read with its subdirectories, or a pattern
	// as of path/filepath.Match. Names that begin with a dot or an underscore are left
	// out of directories and patterns. JobManager and TaskManagers must see the same
	// files under the same path. They must not change while the job runs: what is
	// appended after they were listed is not read, and a file that became shorter
	// fails the job.
	Input string
	// SplitBytes is the most that one reader is given at a time; default 16 MiB.
	SplitBytes int64
	// MaxLineBytes is the longest line; default 1 MiB, at most 64 MiB. A longer one
	// fails the job.
	MaxLineBytes int
}

func (o SourceOptions) withDefaults() SourceOptions {
	if o.SplitBytes == 0 {
		o.SplitBytes = DefaultSplitBytes
	}
	if o.MaxLineBytes == 0 {
		o.MaxLineBytes = DefaultMaxLineBytes
	}
	return o
}

func (o SourceOptions) validate() error {
	var faults []error
	if o.Input == "" {
		faults = append(faults, fmt.Errorf("%w: no input is named", ErrBadOptions))
	}
	if o.SplitBytes < 1 {
		faults = append(faults, fmt.Errorf("%w: splits of %d bytes, want at least 1", ErrBadOptions, o.SplitBytes))
	}
	if o.MaxLineBytes < 1 || o.MaxLineBytes > maxLineBytes {
		faults = append(faults, fmt.Errorf("%w: lines of at most %d bytes, want 1 to %d", ErrBadOptions, o.MaxLineBytes, maxLineBytes))
	}
	return errors.Join(faults...)
}

// Lines returns a source of the files' lines, without their ends (a newline, or a
// carriage return and a newline). The last line needs no end.
func Lines(o SourceOptions) flow.Source[string] {
	return NewSource(o, func(line string) (string, error) { return line, nil })
}

// NewSource returns a source of the records that decode makes of lines. decode may keep
// the line. An error of its fails the job, with the file and the line's place.
func NewSource[T any](o SourceOptions, decode func(line string) (T, error)) flow.Source[T] {
	return &source[T]{options: o.withDefaults(), decode: decode}
}

type source[T any] struct {
	options SourceOptions
	decode  func(line string) (T, error)
}

// Enumerator implements [flow.Source].
func (s *source[T]) Enumerator() operator.Enumerator { return &enumerator{options: s.options} }

// Reader implements [flow.Source].
func (s *source[T]) Reader() flow.Reader[T] {
	return &reader[T]{options: s.options, decode: s.decode}
}
