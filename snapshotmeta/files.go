package snapshotmeta

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
)

// Files opens the bytes of handles. Its method Open is a statebackend.OpenFunc.
type Files struct {
	// Store is the checkpoint store.
	Store blobstore.Store
	// Dir is the job's directory in it, to which handles are relative.
	Dir string
	// Foreign opens another store by its location, for handles that [Rebase] made
	// absolute. Nil: there are none, and such a handle is an [ErrForeign].
	Foreign func(location string) (blobstore.Store, error)
}

// Open opens a handle for reading. Length and checksum are verified at the end:
// the last Read returns an [ErrCorrupt] or [ErrTruncated] instead of io.EOF.
func (f Files) Open(ctx context.Context, h weir.StateHandle) (io.ReadCloser, error) {
	if h.File == "" {
		return verify(io.NopCloser(bytes.NewReader(h.Inline)), h), nil
	}
	store, name, err := f.locate(h.File)
	if err != nil {
		return nil, err
	}
	r, err := store.Open(ctx, name, h.Offset, h.Length)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	return verify(r, h), nil
}

// locate finds the store and the name of a handle's file.
func (f Files) locate(file string) (blobstore.Store, string, error) {
	i := strings.LastIndex(file, foreignSeparator)
	if i < 0 {
		return f.Store, path.Join(f.Dir, file), nil
	}
	location, name := file[:i], file[i+len(foreignSeparator):]
	if location == "" || location == f.Store.Location() {
		return f.Store, name, nil
	}
	if f.Foreign == nil {
		return nil, "", fmt.Errorf("%w: %s", ErrForeign, location)
	}
	store, err := f.Foreign(location)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %s: %w", ErrForeign, location, err)
	}
	return store, name, nil
}

// OpenHandle opens a handle that is relative to dir in the store.
func OpenHandle(ctx context.Context, store blobstore.Store, dir string, h weir.StateHandle) (io.ReadCloser, error) {
	return Files{Store: store, Dir: dir}.Open(ctx, h)
}

// foreignSeparator stands between a store's location and a name in it, in the file
// of an absolute handle. No clean name holds it.
const foreignSeparator = "//"

// Rebase makes a handle absolute: location is that of its store, dir the directory
// that the handle is relative to. The location is empty for the checkpoint store
// itself, which hosts may have mounted at different places. A restore from another
// job's snapshot deploys such handles. Inline handles, and absolute ones, are returned
// as they are.
func Rebase(h weir.StateHandle, location, dir string) weir.StateHandle {
	if h.File != "" && !strings.Contains(h.File, foreignSeparator) {
		h.File = location + foreignSeparator + path.Join(dir, h.File)
	}
	return h
}

// RebaseState is [Rebase] of all handles of one operator's subtask.
func RebaseState(s weir.OperatorSubtaskState, location, dir string) weir.OperatorSubtaskState {
	elements := make([]weir.StateHandle, len(s.Elements))
	for i, e := range s.Elements {
		elements[i] = Rebase(e, location, dir)
	}
	keyed := make([]weir.KeyedStateHandle, len(s.Keyed))
	for i, k := range s.Keyed {
		k.Handle = Rebase(k.Handle, location, dir)
		keyed[i] = k
	}
	s.Elements, s.Keyed = elements, keyed
	return s
}

// RebaseChannels is [Rebase] of in-flight data.
func RebaseChannels(channels []weir.ChannelStateHandle, location, dir string) []weir.ChannelStateHandle {
	rebased := slices.Clone(channels)
	for i := range rebased {
		rebased[i].Handle = Rebase(rebased[i].Handle, location, dir)
	}
	return rebased
}

// Foreign is the absolute name of a blob in the store at a location.
func Foreign(location, name string) string { return location + foreignSeparator + name }

// CutForeign splits a name that [Foreign] made; others are not foreign.
func CutForeign(name string) (location, rest string, foreign bool) {
	i := strings.LastIndex(name, foreignSeparator)
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+len(foreignSeparator):], true
}

// SplitLocation cuts the path of a snapshot, as people write it, into the location
// of a store and the name of its _metadata in it: /data/ck/<job>/chk-9 and
// /data/ck/<job>/chk-9/_metadata both become /data/ck and <job>/chk-9/_metadata. A
// relative path is relative to the working directory, which the caller knows.
func SplitLocation(snapshot string) (location, name string, err error) {
	dir := strings.TrimRight(snapshot, "/")
	if path.Base(dir) == MetadataFile {
		dir = path.Dir(dir)
	}
	job, chk := path.Split(dir)
	root, jobName := path.Split(strings.TrimRight(job, "/"))
	name = path.Join(jobName, chk, MetadataFile)
	location = path.Clean(root)
	if chk == "" || jobName == "" || root == "" || blobstore.CheckName(name) != nil || strings.Count(name, "/") != 2 {
		return "", "", fmt.Errorf("%w: %q does not look like DIR/JOB/chk-N", ErrNotFound, snapshot)
	}
	return location, name, nil
}

// verified reads a handle's bytes and compares them with the handle at their end.
type verified struct {
	inner io.ReadCloser
	h     weir.StateHandle
	crc   uint32
	n     int64
}

func verify(r io.ReadCloser, h weir.StateHandle) io.ReadCloser { return &verified{inner: r, h: h} }

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.inner.Read(p)
	v.crc = crc32.Update(v.crc, castagnoli, p[:n])
	v.n += int64(n)
	if err != io.EOF {
		return n, err
	}
	switch want := handleLength(v.h); {
	case v.n < want:
		return n, fmt.Errorf("%w: %s has %d bytes, want %d", ErrTruncated, describe(v.h), v.n, want)
	case v.n > want:
		return n, fmt.Errorf("%w: %s has more than %d bytes", ErrCorrupt, describe(v.h), want)
	case v.crc != v.h.CRC:
		return n, fmt.Errorf("%w: %s has checksum %08x, want %08x", ErrCorrupt, describe(v.h), v.crc, v.h.CRC)
	}
	return n, io.EOF
}

func (v *verified) Close() error { return v.inner.Close() }

// describe names a handle for people.
func describe(h weir.StateHandle) string {
	if h.File == "" {
		return "inline state"
	}
	return fmt.Sprintf("state in %s at %d", h.File, h.Offset)
}
