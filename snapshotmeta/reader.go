package snapshotmeta

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"

	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
)

// Open reads the snapshot whose _metadata has this blob name; the name of its
// directory will do.
func Open(ctx context.Context, store blobstore.Store, name string) (*Snapshot, error) {
	if path.Base(name) != MetadataFile {
		name = path.Join(name, MetadataFile)
	}
	r, err := store.Open(ctx, name, 0, -1)
	if errors.Is(err, blobstore.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	defer r.Close()
	s, err := Read(r)
	if err != nil {
		return nil, fmt.Errorf("snapshot %s in %s: %w", name, store.Location(), err)
	}
	return s, nil
}

// Read reads a whole _metadata file.
func Read(r io.Reader) (*Snapshot, error) {
	var s *Snapshot
	_, err := Scan(r, Visitor{
		Header: func(h *Header) error {
			s = New(*h)
			return nil
		},
		Subtask: func(op *Operator, sub *Subtask) error {
			return s.add(weir.SubtaskID{Vertex: int32(op.Vertex), Subtask: sub.Index}, *sub)
		},
		Coordinator: func(op *Operator) error {
			s.Operator(op.ID).Coordinator = op.Coordinator
			return nil
		},
		Channel: func(c *weir.ChannelStateHandle) error {
			s.Channels = append(s.Channels, *c)
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// recordReader reads records and sums up what it has read.
type recordReader struct {
	r       *bufio.Reader
	version uint32 // of the file
	crc     uint32
	offset  int64  // bytes read
	buf     []byte // of the last record, reused
}

// corrupt says what is wrong at the present offset. The bytes may be what was
// written by a program with a bug, or not; the checksum was not looked at yet.
func (r *recordReader) corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: before byte %d: %s", ErrCorrupt, r.offset, fmt.Sprintf(format, args...))
}

// full fills b.
func (r *recordReader) full(b []byte) error {
	n, err := io.ReadFull(r.r, b)
	r.offset += int64(n)
	r.crc = crc32.Update(r.crc, castagnoli, b[:n])
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w after %d bytes", ErrTruncated, r.offset)
	}
	if err != nil {
		return fmt.Errorf("after byte %d: %w", r.offset, err)
	}
	return nil
}

// ReadByte is for binary.ReadUvarint.
func (r *recordReader) ReadByte() (byte, error) {
	var b [1]byte
	err := r.full(b[:])
	return b[0], err
}

// magic reads what every file of ours begins with.
func (r *recordReader) magic(magic string, version uint32) error {
	head := make([]byte, len(magic)+4)
	if err := r.full(head); err != nil {
		if n := min(int(r.offset), len(magic)); errors.Is(err, ErrTruncated) && string(head[:n]) != magic[:n] {
			return fmt.Errorf("%w: it begins with %q", ErrNotSnapshot, head[:n])
		}
		return err
	}
	if string(head[:len(magic)]) != magic {
		return fmt.Errorf("%w: it begins with %q, not %q", ErrNotSnapshot, head[:len(magic)], magic)
	}
	switch got := binary.LittleEndian.Uint32(head[len(magic):]); {
	case got == 0:
		return r.corrupt("format version 0")
	case got > version:
		return fmt.Errorf("%w: format version %d, this program reads up to %d", ErrNewerVersion, got, version)
	default:
		r.version = got
	}
	return nil
}

// record reads one record. The body is valid until the next call.
func (r *recordReader) record(limit int) (kind byte, body []byte, err error) {
	if kind, err = r.ReadByte(); err != nil {
		return 0, nil, err
	}
	size, err := binary.ReadUvarint(r)
	if err != nil {
		if errors.Is(err, ErrTruncated) {
			return 0, nil, err
		}
		return 0, nil, r.corrupt("length of a record: %v", err)
	}
	if size > uint64(limit) {
		return 0, nil, r.corrupt("a record of kind %d claims %d bytes, at most %d are allowed", kind, size, limit)
	}
	// Memory is taken as bytes come in, since the length may be a lie.
	body = r.buf[:0]
	for n := int(size); n > 0; {
		step := min(n, 64<<10)
		at := len(body)
		body = append(body, make([]byte, step)...)
		if err := r.full(body[at:]); err != nil {
			return 0, nil, err
		}
		n -= step
	}
	r.buf = body
	return kind, body, nil
}

func (r *recordReader) unmarshal(body []byte, m proto.Message) error {
	if err := proto.Unmarshal(body, m); err != nil {
		return r.corrupt("%s: %v", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}
