package snapshotmeta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
)

// Damage is a part of a snapshot that is not as it was written.
type Damage struct {
	Owner string // operator and subtask, or the end of a channel
	File  string // relative to the job's directory; empty: inside _metadata
	Err   error  // wraps blobstore.ErrNotFound, ErrTruncated, ErrCorrupt, or is the store's
}

// Verification is what [Verify] has seen.
type Verification struct {
	Files  int   // that the snapshot names
	Parts  int   // handles
	Bytes  int64 // of all handles
	Damage int   // parts that are damaged
}

// Verify reads all of a snapshot: its _metadata (by blob name, or that of its
// directory), the bytes of each handle, which must be there and have their length and
// checksum, and the rest of each state file. What does not is told to damaged, which may end the search with an
// error. The error that is returned is that of _metadata, of damaged or of ctx. It holds
// one part in memory, never all.
func Verify(ctx context.Context, store blobstore.Store, name string, damaged func(Damage) error) (Verification, error) {
	dir := path.Dir(name)
	if path.Base(name) == MetadataFile {
		dir = path.Dir(dir)
	}
	v := &verifier{files: Files{Store: store, Dir: dir}, damaged: damaged, seen: make(map[string]bool), buf: make([]byte, verifyPiece)}
	_, err := Walk(ctx, store, name, Visitor{
		Subtask: func(op *Operator, sub *Subtask) (err error) {
			subtaskHandles(sub.State, func(h weir.StateHandle) {
				if err == nil {
					err = v.handle(ctx, fmt.Sprintf("%s[%d]", op.Name, sub.Index), h)
				}
			})
			return err
		},
		Coordinator: func(op *Operator) error { return v.handle(ctx, "enumerator of "+op.Name, op.Coordinator) },
		Channel: func(c *weir.ChannelStateHandle) error {
			return v.handle(ctx, fmt.Sprintf("in flight from %s[%d] to %s[%d]", c.Edge.From, c.Producer, c.Edge.To, c.Consumer), c.Handle)
		},
	})
	v.sum.Files = len(v.seen)
	return v.sum, err
}

// verifyPiece is how much of a file is read at a time, in bytes.
const verifyPiece = 256 << 10

// verifier reads handles.
type verifier struct {
	files   Files
	damaged func(Damage) error
	seen    map[string]bool // files
	buf     []byte
	sum     Verification
}

// handle reads one. Only what the visitor is to end with is returned.
func (v *verifier) handle(ctx context.Context, owner string, h weir.StateHandle) error {
	if h.IsZero() {
		return nil
	}
	v.sum.Parts++
	v.sum.Bytes += handleLength(h)
	err := v.read(ctx, h)
	if h.File != "" && !v.seen[h.File] {
		v.seen[h.File] = true
		if err == nil {
			owner, err = "table of contents", v.contents(ctx, h.File)
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err == nil {
		return nil
	}
	v.sum.Damage++
	return v.damaged(Damage{Owner: owner, File: h.File, Err: err})
}

// contents reads what a state file says of itself at its end, which no handle covers.
func (v *verifier) contents(ctx context.Context, file string) error {
	if ext := path.Ext(file); ext != stateExt && ext != channelsExt {
		return nil // another format, which is covered by its handles
	}
	store, name, err := v.files.locate(file)
	if err != nil {
		return err
	}
	_, err = ReadContents(ctx, store, name)
	return err
}

func (v *verifier) read(ctx context.Context, h weir.StateHandle) error {
	r, err := v.files.Open(ctx, h)
	if err != nil {
		return err
	}
	for err == nil {
		if err = context.Cause(ctx); err == nil {
			_, err = r.Read(v.buf)
		}
	}
	cerr := r.Close()
	if errors.Is(err, io.EOF) {
		return cerr
	}
	return err
}
