package localfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// dir is a directory of the operating system.
type dir struct {
	path string
}

var _ FS = (*dir)(nil)

// Dir opens a directory, creating it if it is missing (with mode 0700).
func Dir(path string) (FS, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %q: %w", path, err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return &dir{path: abs}, nil
}

func (d *dir) Location() string { return d.path }

func (d *dir) Read(name string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(d.path, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, filepath.Join(d.path, name))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxFileSize {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrTooLarge, f.Name(), MaxFileSize)
	}
	return content, nil
}

// WriteOnce writes a temporary file, makes it durable, and links it under its name,
// which fails if the name exists.
func (d *dir) WriteOnce(name string, content []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(d.path, "."+name+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	target := filepath.Join(d.path, name)
	if err := os.Link(tmp.Name(), target); err != nil {
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%w: %s", ErrExists, target)
		}
		return err
	}
	return syncDir(d.path)
}

// Lock takes an advisory lock on the file, which the operating system gives back
// when the process ends. The file stays; it holds the last holder's process id, for
// people.
func (d *dir) Lock(name string) (io.Closer, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := make([]byte, 16)
		n, _ := f.Read(holder)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (process %s holds %s)", ErrLocked, holder[:n], path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0) // only for the message above
	}
	return f, nil
}

// syncDir makes a directory's entries durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
