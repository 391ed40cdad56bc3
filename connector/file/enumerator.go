package file

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/operator"
)

// enumerator hands out what was not assigned yet. Its goroutine alone calls it.
type enumerator struct {
	options SourceOptions
	to      operator.EnumeratorContext
	files   []listed // in order of paths; the first may have been assigned in part
}

var _ operator.Enumerator = (*enumerator)(nil)

// Start implements [operator.Enumerator].
func (e *enumerator) Start(_ context.Context, ec operator.EnumeratorContext) error {
	e.to = ec
	return e.options.validate()
}

// Restore implements [operator.Enumerator].
func (e *enumerator) Restore(state []byte) (err error) {
	e.files, err = parseList(state)
	return err
}

// Assign implements [operator.Enumerator]: it lists the files. Readers ask for splits
// once they run.
func (e *enumerator) Assign(ctx context.Context, parallelism int) (_ [][][]byte, err error) {
	if e.files, err = list(ctx, e.options.Input); err != nil {
		return nil, err
	}
	if n := len(appendList(nil, e.files)); n > maxListBytes {
		return nil, permanent(weir.FaultUser, fmt.Errorf("%w: the paths of %d input files take %d bytes in every checkpoint, the most is %d; read them in several jobs, or join files",
			ErrBadOptions, len(e.files), n, maxListBytes))
	}
	return make([][][]byte, parallelism), nil
}

// HandleEvent implements [operator.Enumerator]: a reader asks for more. A reader that
// does not run any more gets nothing; it goes back to its snapshot, and so does the
// enumerator.
func (e *enumerator) HandleEvent(_ context.Context, subtask int, event []byte) error {
	if len(event) != 2 || event[0] != eventVersion || event[1] != request {
		return badState("a reader's event of %d bytes cannot be read", len(event))
	}
	kept := slices.Clone(e.files[:min(len(e.files), maxBatch)])
	rest := e.files
	batch := e.cut()
	if err := e.to.SendEvent(subtask, appendAssignment(nil, batch)); err != nil {
		copy(rest, kept)
		e.files = rest
	}
	return nil
}

// cut takes the next splits: one, or several small files together.
func (e *enumerator) cut() (batch []span) {
	room := e.options.SplitBytes
	for len(e.files) > 0 && len(batch) < maxBatch && room > 0 {
		f := &e.files[0]
		n := min(f.size-f.next, e.options.SplitBytes)
		if len(batch) > 0 && n > room {
			break
		}
		batch = append(batch, span{path: f.path, size: f.size, start: f.next, end: f.next + n, pos: f.next, begun: f.next == 0})
		room -= n
		f.next += n
		if f.next == f.size {
			e.files = e.files[1:]
		}
	}
	return batch
}

// Snapshot implements [operator.Enumerator].
func (e *enumerator) Snapshot(context.Context, int64) ([]byte, error) {
	return appendList(nil, e.files), nil
}

// NotifyComplete implements [operator.Enumerator].
func (e *enumerator) NotifyComplete(int64) {}

// Close implements [operator.Enumerator].
func (e *enumerator) Close() error { return nil }

// hidden says whether a name is left out of directories and patterns.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// list finds the files of an input, in order.
func list(ctx context.Context, input string) ([]listed, error) {
	paths := []string{input}
	info, err := os.Stat(input)
	pattern := err != nil && strings.ContainsAny(input, `*?[`)
	if pattern {
		if paths, err = filepath.Glob(input); err != nil {
			return nil, permanent(weir.FaultUser, fmt.Errorf("input %q: %w", input, err))
		}
		paths = slices.DeleteFunc(paths, func(p string) bool { return hidden(filepath.Base(p)) })
		if len(paths) == 0 {
			return nil, permanent(weir.FaultUser, fmt.Errorf("%w: nothing matches %q on the JobManager's host", ErrNoInput, input))
		}
	}
	var files []listed
	for _, p := range paths {
		if !pattern && err == nil && info.Mode().IsRegular() {
			return named(nil, p, info.Size())
		}
		if files, err = walk(ctx, files, p); err != nil {
			return nil, fmt.Errorf("list the input on the JobManager's host: %w", err)
		}
	}
	if len(files) == 0 && !pattern {
		return nil, permanent(weir.FaultUser, fmt.Errorf("%w: %q on the JobManager's host has no files with content", ErrNoInput, input))
	}
	return files, nil
}

// walk adds the files of a directory, or one file.
func walk(ctx context.Context, files []listed, root string) ([]listed, error) {
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err) && p == root:
			return permanent(weir.FaultUser, fmt.Errorf("%w: %q does not exist", ErrNoInput, p))
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case p != root && hidden(d.Name()):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		info, err := os.Stat(p) // follows links
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		files, err = named(files, p, info.Size())
		return err
	})
	return files, err
}

// named adds one file, unless it is empty.
func named(files []listed, path string, size int64) ([]listed, error) {
	if size == 0 {
		return files, nil
	}
	abs, err := filepath.Abs(path)
	switch {
	case err != nil:
		return nil, err
	case len(abs) > maxPathBytes:
		return nil, permanent(weir.FaultUser, fmt.Errorf("%w: a path of %d bytes, the most is %d", ErrBadOptions, len(abs), maxPathBytes))
	case len(files) == maxFiles:
		return nil, permanent(weir.FaultUser, fmt.Errorf("%w: more than %d input files", ErrBadOptions, maxFiles))
	}
	return append(files, listed{path: abs, size: size}), nil
}
