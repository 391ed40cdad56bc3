package fs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/weirflow/weir/blobstore"
)

// tempFile is what a writer needs of its temporary file.
type tempFile interface {
	io.WriteCloser
	Sync() error
}

// linkTries bounds how often a writer makes a directory that others remove.
const linkTries = 100

// errFinished is returned by calls on a writer after Commit or Abort.
var errFinished = errors.New("blob writer was committed or aborted before")

// writer is one blob being written.
type writer struct {
	store *Store
	name  string
	temp  string   // name of the temporary file
	file  tempFile // nil after Commit or Abort
}

func (w *writer) Write(p []byte) (int, error) {
	if w.file == nil {
		return 0, errFinished
	}
	n, err := w.file.Write(p)
	if err != nil {
		err = fmt.Errorf("write blob %s: %w", w.store.full(w.name), err)
	}
	return n, err
}

// Commit makes the content durable, then the name. An error after the link leaves
// the outcome open: the blob is visible, but may not survive a crash of the host.
func (w *writer) Commit(ctx context.Context) error {
	if w.file == nil {
		return errFinished
	}
	if err := ctx.Err(); err != nil {
		w.Abort()
		return err
	}
	defer w.removeTemp()
	err := w.file.Sync()
	if cerr := w.file.Close(); err == nil {
		err = cerr
	}
	w.file = nil
	if err != nil {
		return fmt.Errorf("write blob %s: %w", w.store.full(w.name), err)
	}
	made, err := w.link()
	if errors.Is(err, iofs.ErrExist) {
		return fmt.Errorf("%w: %s", blobstore.ErrExists, w.store.full(w.name))
	}
	if err != nil {
		return fmt.Errorf("name blob %s: %w", w.store.full(w.name), err)
	}
	if err := w.store.syncDirs(path.Dir(w.name), made); err != nil {
		return fmt.Errorf("make the name of blob %s durable: %w", w.store.full(w.name), err)
	}
	return nil
}

// Abort drops the temporary file.
func (w *writer) Abort() {
	if w.file == nil {
		return
	}
	_ = w.file.Close() // the content is dropped
	w.file = nil
	w.removeTemp()
}

// removeTemp leaves a file that cannot be removed to a later Open.
func (w *writer) removeTemp() { _ = w.store.root.Remove(w.temp) }

// link gives the temporary file its name and says how many directories it had to
// make. A delete may remove a directory as empty between our making it and our
// linking into it; then we make it again.
func (w *writer) link() (made int, err error) {
	dir := path.Dir(w.name)
	for range linkTries {
		if missing := w.store.missingDirs(dir); missing > 0 {
			made = max(made, missing)
			err = w.store.root.MkdirAll(dir, dirMode)
		}
		if err == nil {
			err = w.store.root.Link(w.temp, w.name)
		}
		if !errors.Is(err, iofs.ErrNotExist) {
			return made, err
		}
		err = nil
	}
	return made, fmt.Errorf("its directory was removed %d times: %w", linkTries, iofs.ErrNotExist)
}

// missingDirs counts the directories on the way to dir that do not exist.
func (s *Store) missingDirs(dir string) int {
	n := 0
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := s.root.Lstat(dir); err == nil {
			break
		}
		n++
	}
	return n
}

// syncDirs makes the entries of dir durable, and those of as many directories above
// it as were made on the way.
func (s *Store) syncDirs(dir string, above int) error {
	for ; above >= 0; above-- {
		d, err := s.root.Open(dir)
		if err != nil {
			return err
		}
		err = d.Sync()
		if cerr := d.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		if dir == "." {
			break
		}
		dir = path.Dir(dir)
	}
	return nil
}

// createTemp makes a temporary file with a name of its own.
func (s *Store) createTemp() (name string, f tempFile, err error) {
	name = TempDir + "/" + rand.Text() + tempSuffix
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, iofs.ErrNotExist) { // a store that was opened as it is, and is written for the first time
		if err = s.root.MkdirAll(TempDir, dirMode); err == nil {
			file, err = s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		}
	}
	if err != nil {
		return "", nil, err
	}
	if s.wrap != nil {
		return name, s.wrap(file), nil
	}
	return name, file, nil
}

// probe proves that a file can be made and written, if there is room.
func (s *Store) probe() error {
	err := s.probeRoom()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return err
}

// probeRoom is probe where a full directory is an error.
func (s *Store) probeRoom() error {
	name, f, err := s.createTemp()
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("probe"))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if rerr := s.root.Remove(name); err == nil {
		err = rerr
	}
	return err
}

// removeOldTemps removes what writers that died have left.
func (s *Store) removeOldTemps(now time.Time) error {
	entries, err := s.readDir(TempDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasSuffix(e.Name(), tempSuffix) || now.Sub(info.ModTime()) < TempAge {
			continue
		}
		err = s.root.Remove(TempDir + "/" + e.Name())
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
	}
	return nil
}
