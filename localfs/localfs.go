package localfs

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Errors.
var (
	// ErrNotFound is returned by Read when there is no such file.
	ErrNotFound = errors.New("file not found")
	// ErrExists is returned by WriteOnce when there is one.
	ErrExists = errors.New("file exists")
	// ErrLocked is returned by Lock while another holder has the lock.
	ErrLocked = errors.New("in use by another process")
	// ErrBadName is returned for names that are not plain file names.
	ErrBadName = errors.New("bad file name")
	// ErrTooLarge is returned by Read for files over MaxFileSize.
	ErrTooLarge = errors.New("file too large")
)

// MaxFileSize bounds what Read reads.
const MaxFileSize = 1 << 20

// FS is a flat directory of small files.
type FS interface {
	// Read returns a file's content.
	Read(name string) ([]byte, error)
	// WriteOnce creates a file, durably.
	WriteOnce(name string, content []byte) error
	// Lock takes the lock of this name without waiting; closing it gives it back.
	Lock(name string) (io.Closer, error)
	// Location is the directory, for people.
	Location() string
}

// ReadOrCreate returns the file's content; if there is none, it writes what fresh
// returns. Of several callers at once all get the same content.
func ReadOrCreate(fs FS, name string, fresh func() []byte) ([]byte, error) {
	content, err := fs.Read(name)
	if !errors.Is(err, ErrNotFound) {
		return content, err
	}
	content = fresh()
	err = fs.WriteOnce(name, content)
	if errors.Is(err, ErrExists) {
		return fs.Read(name)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// checkName accepts plain file names that are not hidden.
func checkName(name string) error {
	if name == "" || len(name) > 128 || name[0] == '.' || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("%w: %q", ErrBadName, name)
	}
	return nil
}
