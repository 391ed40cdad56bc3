package fs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weirflow/weir/blobstore"
)

const (
	// TempDir is the directory of temporary files, below the root.
	TempDir = ".weir-tmp"
	// TempAge is how long a temporary file is left alone after its last write.
	TempAge = 24 * time.Hour

	tempSuffix = ".tmp"
	dirMode    = 0o755
	fileMode   = 0o644
)

// Store is a [blobstore.Store] in a directory.
type Store struct {
	root *os.Root
	path string
	// wrap stands between a writer and its temporary file in tests; else nil.
	wrap func(tempFile) tempFile
}

var _ blobstore.Store = (*Store)(nil)

// Open opens the directory for writing, makes it if it is missing, and proves by a
// probe that files can be made in it, or could if there were room: what is in a full
// directory can be read, and removed.
func Open(dir string) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("blob store %q: %w", dir, err)
	}
	if err := os.MkdirAll(filepath.Join(abs, TempDir), dirMode); err != nil {
		return nil, fmt.Errorf("blob store: make directory: %w", err)
	}
	s, err := OpenExisting(abs)
	if err != nil {
		return nil, err
	}
	if err := s.probe(); err != nil {
		s.Close()
		return nil, fmt.Errorf("blob store %s is not writable: %w", abs, err)
	}
	if err := s.removeOldTemps(time.Now()); err != nil {
		s.Close()
		return nil, fmt.Errorf("blob store %s: remove old temporary files: %w", abs, err)
	}
	return s, nil
}

// OpenExisting opens a directory that must exist. It changes nothing.
func OpenExisting(dir string) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("blob store %q: %w", dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("blob store: %w", err)
	}
	return &Store{root: root, path: abs}, nil
}

// Close gives the directory back. Readers and writers that are open stay usable,
// except that Commit fails.
func (s *Store) Close() error { return s.root.Close() }

// Gone says whether the path leads to the opened directory no more: it was removed, or
// another one was made or mounted there.
func (s *Store) Gone() bool {
	opened, err := s.root.Stat(".")
	if err != nil {
		return true
	}
	there, err := os.Stat(s.path)
	return err != nil || !os.SameFile(opened, there)
}

// Location is the directory's absolute path.
func (s *Store) Location() string { return s.path }

// Create opens a temporary file.
func (s *Store) Create(ctx context.Context, name string) (blobstore.Writer, error) {
	if err := s.check(ctx, name); err != nil {
		return nil, err
	}
	if _, err := s.root.Lstat(name); err == nil {
		return nil, fmt.Errorf("%w: %s", blobstore.ErrExists, s.full(name))
	}
	temp, f, err := s.createTemp()
	if err != nil {
		return nil, fmt.Errorf("create blob %s: %w", s.full(name), err)
	}
	return &writer{store: s, name: name, temp: temp, file: f}, nil
}

// Open opens the file and stands at offset.
func (s *Store) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := s.check(ctx, name); err != nil {
		return nil, err
	}
	f, err := s.root.Open(name)
	if err != nil {
		return nil, s.readError("open", name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = iofs.ErrNotExist
	}
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, s.readError("open", name, err)
	}
	if length < 0 {
		return f, nil
	}
	return &section{Reader: io.LimitReader(f, length), Closer: f}, nil
}

type section struct {
	io.Reader
	io.Closer
}

// Stat returns the file's size.
func (s *Store) Stat(ctx context.Context, name string) (blobstore.Info, error) {
	if err := s.check(ctx, name); err != nil {
		return blobstore.Info{}, err
	}
	info, err := s.root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = iofs.ErrNotExist
	}
	if err != nil {
		return blobstore.Info{}, s.readError("stat", name, err)
	}
	return blobstore.Info{Name: name, Size: info.Size(), Modified: info.ModTime()}, nil
}

// Delete removes the file and the directories that it leaves empty.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := s.check(ctx, name); err != nil {
		return err
	}
	info, err := s.root.Lstat(name)
	if err == nil && info.IsDir() {
		err = iofs.ErrNotExist
	}
	if err == nil {
		err = s.root.Remove(name)
	}
	if err != nil {
		return s.readError("delete", name, err)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if s.root.Remove(dir) != nil {
			break // not empty, most likely
		}
	}
	return nil
}

// List walks the directories that the prefix can lie in.
func (s *Store) List(ctx context.Context, prefix string, fn func(blobstore.Info) error) error {
	dir := "."
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		dir = prefix[:i]
		if err := blobstore.CheckName(dir); err != nil {
			return err
		}
	}
	return s.walk(ctx, dir, prefix, fn)
}

// walk calls fn for the files below dir in order of their full names: a directory
// sorts as if a slash followed it.
func (s *Store) walk(ctx context.Context, dir, prefix string, fn func(blobstore.Info) error) error {
	entries, err := s.readDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, e.Name())
		switch {
		case name == TempDir:
		case e.IsDir():
			if below := name + "/"; strings.HasPrefix(below, prefix) || strings.HasPrefix(prefix, below) {
				if err := s.walk(ctx, name, prefix, fn); err != nil {
					return err
				}
			}
		case e.Type().IsRegular() && strings.HasPrefix(name, prefix):
			info, err := e.Info()
			if errors.Is(err, iofs.ErrNotExist) {
				continue // deleted meanwhile
			}
			if err != nil {
				return fmt.Errorf("list blobs in %s: %w", s.full(dir), err)
			}
			if err := fn(blobstore.Info{Name: name, Size: info.Size(), Modified: info.ModTime()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readDir returns a directory's entries in order; of one that is absent, none.
func (s *Store) readDir(dir string) ([]iofs.DirEntry, error) {
	d, err := s.root.Open(dir)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list blobs in %s: %w", s.full(dir), err)
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list blobs in %s: %w", s.full(dir), err)
	}
	key := func(e iofs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b iofs.DirEntry) int { return cmp.Compare(key(a), key(b)) })
	return entries, nil
}

// check refuses names that are not clean or are ours.
func (s *Store) check(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := blobstore.CheckName(name); err != nil {
		return err
	}
	if name == TempDir || strings.HasPrefix(name, TempDir+"/") {
		return fmt.Errorf("%w: %q is for temporary files", blobstore.ErrBadName, name)
	}
	return nil
}

// readError turns an operating system's error into the contract's.
func (s *Store) readError(verb, name string, err error) error {
	if isAbsent(err) {
		return fmt.Errorf("%w: %s", blobstore.ErrNotFound, s.full(name))
	}
	return fmt.Errorf("%s blob %s: %w", verb, s.full(name), err)
}

// isAbsent says that a file, or a directory on the way to it, does not exist or is
// the other kind.
func isAbsent(err error) bool {
	return errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func (s *Store) full(name string) string { return filepath.Join(s.path, name) }
