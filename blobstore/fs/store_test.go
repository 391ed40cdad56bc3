package fs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/blobstore/storetest"
)

func open(t *testing.T, dir string) *fs.Store {
	t.Helper()
	s, err := fs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Join(dir, fs.TempDir)); err != nil || len(left) != 0 {
			t.Errorf("temporary files left: %v, %v", left, err)
		}
	})
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (store, other blobstore.Store) {
		dir := filepath.Join(t.TempDir(), "made", "by", "open")
		return open(t, dir), open(t, dir)
	})
}

func TestSymbolicLinksLeadNowhere(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := open(t, dir)
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), "link/secret", 0, -1); err == nil {
		t.Error("Open through the link: want an error")
	}
	if w, err := s.Create(t.Context(), "link/new"); err == nil {
		if err := w.Commit(t.Context()); err == nil {
			t.Error("Commit through the link: want an error")
		}
	}
	if err := s.Delete(t.Context(), "link/secret"); err == nil {
		t.Error("Delete through the link: want an error")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside: %v, %v", left, err)
	}
}

func TestTemporaryDirectoryIsNotForBlobs(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{fs.TempDir, fs.TempDir + "/x"} {
		if _, err := s.Create(t.Context(), name); !errors.Is(err, blobstore.ErrBadName) {
			t.Errorf("Create(%q): %v", name, err)
		}
	}
}

func TestOnlyOldTemporaryFilesAreRemovedAtOpen(t *testing.T) {
	dir := t.TempDir()
	tmp := filepath.Join(dir, fs.TempDir)
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-fs.TempAge - time.Hour)
	for name, at := range map[string]time.Time{"old.tmp": old, "young.tmp": time.Now(), "old.other": old} {
		path := filepath.Join(tmp, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	s, err := fs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var left []string
	entries, err := os.ReadDir(tmp)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if err != nil || !slices.Equal(left, []string{"old.other", "young.tmp"}) {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestDirectoryThatCannotBeUsedIsAClearError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Open(filepath.Join(file, "dir")); err == nil || !strings.Contains(err.Error(), "make directory") {
		t.Errorf("below a file: %v", err)
	}
	if _, err := fs.OpenExisting(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	// The temporary directory's place is taken by a file, so no file can be made,
	// whoever runs the test: permissions would not stop the superuser.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fs.TempDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Open(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("unusable: %v", err)
	}
}

func TestReadOnlyUseChangesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "blob"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := fs.OpenExisting(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := storetest.Get(t, s, "blob"); string(got) != "x" {
		t.Errorf("content %q", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("entries %v, %v", entries, err)
	}
	storetest.Put(t, s, "job/other", []byte("y"))
	if got := storetest.Get(t, s, "job/other"); string(got) != "y" {
		t.Errorf("content %q", got)
	}
}

func TestFullDiskIsAClearErrorAndLeavesNothing(t *testing.T) {
	for _, at := range []string{"write", "sync", "close"} {
		dir := t.TempDir()
		s := open(t, dir)
		s.FailTemp(at, syscall.ENOSPC)
		w, err := s.Create(t.Context(), "job/blob")
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write([]byte("content"))
		if err == nil {
			err = w.Commit(t.Context())
		}
		w.Abort()
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), filepath.Join(dir, "job/blob")) ||
			!strings.Contains(err.Error(), "no space left on device") {
			t.Errorf("full at %s: %v", at, err)
		}
		if got := storetest.Names(t, s, ""); len(got) != 0 {
			t.Errorf("left %v", got)
		}
	}
}

func TestFullDirectoryCanBeOpened(t *testing.T) {
	s := open(t, t.TempDir())
	for at, full := range map[string]error{"write": syscall.ENOSPC, "close": syscall.EDQUOT} {
		s.FailTemp(at, full)
		if err := s.Probe(); err != nil {
			t.Errorf("%v at %s: %v", full, at, err)
		}
	}
	s.FailTemp("write", syscall.EIO)
	if err := s.Probe(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a broken disk: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(s.Location(), fs.TempDir)); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestEmptyDirectoriesGo(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	storetest.Put(t, s, "job/chk-1/a", nil)
	if err := s.Delete(t.Context(), "job/chk-1/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "job")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory is left: %v", err)
	}
}
