package localfs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weirflow/weir/localfs"
)

// both runs a test on both implementations; open gives another process's view of
// one directory.
func both(t *testing.T, test func(t *testing.T, open func() localfs.FS)) {
	t.Run("dir", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "deep", "data")
		test(t, func() localfs.FS {
			fs, err := localfs.Dir(path)
			if err != nil {
				t.Fatal(err)
			}
			return fs
		})
	})
	t.Run("memory", func(t *testing.T) {
		mem := localfs.NewMemory()
		test(t, func() localfs.FS { return mem.Process() })
	})
}

func TestFileIsWrittenOnceAndReadWhole(t *testing.T) {
	both(t, func(t *testing.T, open func() localfs.FS) {
		fs := open()
		if _, err := fs.Read("id"); !errors.Is(err, localfs.ErrNotFound) {
			t.Fatalf("Read before: %v", err)
		}
		content := []byte("one")
		if err := fs.WriteOnce("id", content); err != nil {
			t.Fatal(err)
		}
		content[0] = 'X'
		if err := fs.WriteOnce("id", []byte("two")); !errors.Is(err, localfs.ErrExists) {
			t.Fatalf("second WriteOnce: %v", err)
		}
		got, err := open().Read("id")
		if err != nil || string(got) != "one" {
			t.Fatalf("Read: %q, %v", got, err)
		}
	})
}

func TestReadOrCreateKeepsTheFirstContent(t *testing.T) {
	both(t, func(t *testing.T, open func() localfs.FS) {
		for _, fresh := range []string{"first", "second"} {
			got, err := localfs.ReadOrCreate(open(), "id", func() []byte { return []byte(fresh) })
			if err != nil || string(got) != "first" {
				t.Fatalf("got %q, %v", got, err)
			}
		}
		// Another process writes between our read and our write.
		fs := open()
		got, err := localfs.ReadOrCreate(fs, "raced", func() []byte {
			if err := open().WriteOnce("raced", []byte("theirs")); err != nil {
				t.Fatal(err)
			}
			return []byte("ours")
		})
		if err != nil || string(got) != "theirs" {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}

func TestLockHasOneHolder(t *testing.T) {
	both(t, func(t *testing.T, open func() localfs.FS) {
		first, err := open().Lock("lock")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open().Lock("lock"); !errors.Is(err, localfs.ErrLocked) {
			t.Fatalf("second Lock: %v", err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := open().Lock("lock")
		if err != nil {
			t.Fatalf("Lock after Close: %v", err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNamesThatAreNotPlainAreRefused(t *testing.T) {
	both(t, func(t *testing.T, open func() localfs.FS) {
		fs := open()
		for _, name := range []string{"", ".", "..", ".hidden", "a/b", "../x", "a\x00b", `a\b`, strings.Repeat("x", 129)} {
			if _, err := fs.Read(name); !errors.Is(err, localfs.ErrBadName) {
				t.Errorf("Read(%q): %v", name, err)
			}
			if err := fs.WriteOnce(name, nil); !errors.Is(err, localfs.ErrBadName) {
				t.Errorf("WriteOnce(%q): %v", name, err)
			}
			if _, err := fs.Lock(name); !errors.Is(err, localfs.ErrBadName) {
				t.Errorf("Lock(%q): %v", name, err)
			}
		}
	})
}

func TestKilledProcessLosesItsLocks(t *testing.T) {
	mem := localfs.NewMemory()
	victim := mem.Process()
	old, err := victim.Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	victim.Kill()
	if _, err := mem.Process().Lock("lock"); err != nil {
		t.Fatalf("Lock after Kill: %v", err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := mem.Process().Lock("lock"); !errors.Is(err, localfs.ErrLocked) {
		t.Fatalf("the dead process's Close freed the new holder's lock: %v", err)
	}
}

func TestDirRefusesHugeFilesAndLeavesNoTemporaries(t *testing.T) {
	path := t.TempDir()
	fs, err := localfs.Dir(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "huge"), bytes.Repeat([]byte("x"), localfs.MaxFileSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Read("huge"); !errors.Is(err, localfs.ErrTooLarge) {
		t.Fatalf("Read: %v", err)
	}
	if err := fs.WriteOnce("id", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := fs.WriteOnce("id", []byte("y")); err == nil {
		t.Fatal("want an error")
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 2 {
		t.Fatalf("entries %v, %v", entries, err)
	}
}

func TestDirNamesTheHolderOfALock(t *testing.T) {
	fs, err := localfs.Dir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	held, err := fs.Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	_, err = fs.Lock("lock")
	if err == nil || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Fatalf("got %v", err)
	}
}

func TestDirThatCannotBeMadeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := localfs.Dir(filepath.Join(file, "sub")); err == nil {
		t.Fatal("want an error")
	}
}
