package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Errors of a store.
var (
	// ErrExists is returned by Create or Commit when the name is taken.
	ErrExists = errors.New("blob exists")
	// ErrNotFound is returned by Open, Stat and Delete when there is no such blob.
	ErrNotFound = errors.New("blob not found")
	// ErrBadName is returned when a name is not a clean relative path.
	ErrBadName = errors.New("bad blob name")
)

// MaxNameLength is the longest name in bytes.
const MaxNameLength = 1024

// Info describes a blob.
type Info struct {
	Name string
	Size int64
	// Modified is when the blob was written, by the clock of whoever keeps it; zero if
	// the store does not know.
	Modified time.Time
}

// Store keeps blobs.
type Store interface {
	// Create opens a new blob for writing. It may fail with ErrExists at once, or
	// only at Commit.
	Create(ctx context.Context, name string) (Writer, error)
	// Open reads a blob from offset; length < 0 means to its end.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// Stat returns the blob's size.
	Stat(ctx context.Context, name string) (Info, error)
	// List calls fn for every blob whose name starts with prefix, in order of names,
	// until fn fails.
	List(ctx context.Context, prefix string, fn func(Info) error) error
	// Delete removes a blob.
	Delete(ctx context.Context, name string) error
	// Location is the store's root for people, for example a directory.
	Location() string
}

// Writer writes one blob.
type Writer interface {
	io.Writer
	// Commit makes the blob durable and visible. Nothing may be written after it.
	Commit(ctx context.Context) error
	// Abort drops what was written. It does nothing after Commit.
	Abort()
}

// CheckName says whether a name is a clean relative path.
func CheckName(name string) error {
	if name == "" || len(name) > MaxNameLength {
		return fmt.Errorf("%w: %q has %d bytes, want 1 to %d", ErrBadName, name, len(name), MaxNameLength)
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\x00\\") {
			return fmt.Errorf("%w: %q has the element %q", ErrBadName, name, part)
		}
	}
	return nil
}
