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

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/proto/snapshotpb"
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
	in := &recordReader{r: bufio.NewReaderSize(r, 64<<10)}
	if err := in.magic(metaMagic, metaWithChannels); err != nil {
		return nil, err
	}
	kind, body, err := in.record(maxHeader)
	if err != nil {
		return nil, err
	}
	var mh snapshotpb.Header
	if kind != recordHeader {
		return nil, in.corrupt("first record has kind %d, want the header", kind)
	}
	if err := in.unmarshal(body, &mh); err != nil {
		return nil, err
	}
	h, err := headerFromPB(&mh)
	if err != nil {
		return nil, in.corrupt("header: %v", err)
	}
	s := New(h)
	counts, err := in.body(s)
	if err != nil {
		return nil, err
	}
	return s, in.end(s, counts)
}

// body reads the records up to the footer, which it returns; seen counts are
// compared in end.
func (r *recordReader) body(s *Snapshot) (*snapshotpb.Footer, error) {
	seen := &snapshotpb.Footer{}
	channels := channelCheck{snapshot: s}
	for n := 0; n <= maxRecords; n++ {
		kind, body, err := r.record(maxRecord)
		if err != nil {
			return nil, err
		}
		switch kind {
		case recordSubtask:
			err = r.subtask(s, body)
			seen.Subtasks++
		case recordCoordinator:
			err = r.coordinator(s, body)
			seen.Coordinators++
		case recordChannel:
			err = r.channel(&channels, body)
			seen.Channels++
		case recordFooter:
			footer := new(snapshotpb.Footer)
			if err := r.unmarshal(body, footer); err != nil {
				return nil, err
			}
			if footer.Subtasks != seen.Subtasks || footer.Coordinators != seen.Coordinators || footer.Channels != seen.Channels {
				return nil, r.corrupt("footer counts %d subtasks, %d coordinators and %d channels, there are %d, %d and %d",
					footer.Subtasks, footer.Coordinators, footer.Channels, seen.Subtasks, seen.Coordinators, seen.Channels)
			}
			return footer, nil
		default:
			err = r.corrupt("unknown record kind %d", kind)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, r.corrupt("more than %d records", maxRecords)
}

func (r *recordReader) subtask(s *Snapshot, body []byte) error {
	var m snapshotpb.Subtask
	if err := r.unmarshal(body, &m); err != nil {
		return err
	}
	id, sub, err := subtaskFromPB(&m)
	if err == nil {
		err = s.add(id, sub)
	}
	if err != nil {
		return r.corrupt("subtask %d of operator %q: %v", m.Subtask, m.OperatorName, err)
	}
	return nil
}

func (r *recordReader) coordinator(s *Snapshot, body []byte) error {
	var m snapshotpb.Coordinator
	if err := r.unmarshal(body, &m); err != nil {
		return err
	}
	var id [16]byte
	err := fixed(id[:], m.OperatorId, "operator id")
	if err != nil {
		return r.corrupt("coordinator of operator %q: %v", m.OperatorName, err)
	}
	op := s.Operator(id)
	if op == nil || !op.Coordinator.IsZero() {
		return r.corrupt("coordinator of operator %q: the operator is unknown or has one", m.OperatorName)
	}
	if op.Coordinator, err = handleFromPB(m.State); err != nil {
		return r.corrupt("coordinator of operator %q: %v", m.OperatorName, err)
	}
	return nil
}

func (r *recordReader) channel(check *channelCheck, body []byte) error {
	if r.version < metaWithChannels {
		return r.corrupt("a channel in a file of version %d", r.version)
	}
	var m snapshotpb.Channel
	if err := r.unmarshal(body, &m); err != nil {
		return err
	}
	c, err := channelFromPB(&m)
	if check.any && c.Edge == check.last.Edge {
		c.Edge = check.last.Edge // one copy of the names
	}
	if err == nil {
		err = check.next(c)
	}
	if err != nil {
		return r.corrupt("channel of operator %q: %v", m.ToOperator, err)
	}
	check.snapshot.Channels = append(check.snapshot.Channels, c)
	return nil
}

// end reads the checksum, and finds that nothing follows.
func (r *recordReader) end(s *Snapshot, footer *snapshotpb.Footer) error {
	want := r.crc
	var sum [4]byte
	if err := r.full(sum[:]); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(sum[:]); got != want {
		return fmt.Errorf("%w: checksum is %08x, that of the %d bytes before it is %08x", ErrCorrupt, got, r.offset-4, want)
	}
	if _, err := r.r.ReadByte(); err != io.EOF {
		if err != nil {
			return fmt.Errorf("after byte %d: %w", r.offset, err)
		}
		return r.corrupt("bytes follow the checksum")
	}
	if uint64(s.Bytes()) != footer.StateBytes {
		return r.corrupt("footer says %d bytes of state, handles have %d", footer.StateBytes, s.Bytes())
	}
	return nil
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
