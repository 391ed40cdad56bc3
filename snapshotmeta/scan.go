package snapshotmeta

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/proto/snapshotpb"
)

// Visitor is told what [Scan] finds, in the order of the file. Functions may be nil. An
// error ends the scan and is returned as it is. What they are given is theirs to keep,
// but for the operator: it is the same one each time, has no subtasks in it, and is
// not to be written.
type Visitor struct {
	Header      func(*Header) error
	Subtask     func(*Operator, *Subtask) error
	Coordinator func(*Operator) error // its handle is set
	Channel     func(*weir.ChannelStateHandle) error
}

// Walk streams the snapshot whose _metadata has this blob name, or lies in the
// directory of this name, without ever holding all of it. It reads the file twice:
// once to verify it, and only then for the visitor.
func Walk(ctx context.Context, store blobstore.Store, name string, v Visitor) (*Header, error) {
	if path.Base(name) != MetadataFile {
		name = path.Join(name, MetadataFile)
	}
	var h *Header
	for _, visitor := range []Visitor{{}, v} {
		r, err := store.Open(ctx, name, 0, -1)
		if errors.Is(err, blobstore.ErrNotFound) {
			return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
		}
		if err != nil {
			return nil, fmt.Errorf("open snapshot: %w", err)
		}
		h, err = Scan(r, visitor)
		if cerr := r.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot %s in %s: %w", name, store.Location(), err)
		}
	}
	return h, nil
}

// Scan reads a _metadata file record by record. The visitor hears of records before the
// checksum at the end was read: only when Scan returns without an error is what it was
// told true. [Walk] spares the visitor that.
func Scan(r io.Reader, v Visitor) (*Header, error) {
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
	if v.Header != nil {
		if err := v.Header(&h); err != nil {
			return nil, err
		}
	}
	s := &scan{recordReader: in, visitor: v, plan: New(h), seen: make(map[weir.OperatorID][]uint64)}
	s.channels.snapshot = s.plan
	footer, err := s.body()
	if err != nil {
		return nil, err
	}
	return &h, s.end(footer)
}

// scan is one reading of a file, after its header.
type scan struct {
	*recordReader
	visitor  Visitor
	plan     *Snapshot                    // the header's operators, without subtasks
	seen     map[weir.OperatorID][]uint64 // bit sets of subtasks, by operator
	channels channelCheck
	state    int64 // bytes that handles refer to, so far
}

// body reads the records up to the footer, which it returns; seen counts are
// compared in end.
func (s *scan) body() (*snapshotpb.Footer, error) {
	seen := &snapshotpb.Footer{}
	for n := 0; n <= maxRecords; n++ {
		kind, body, err := s.record(maxRecord)
		if err != nil {
			return nil, err
		}
		switch kind {
		case recordSubtask:
			err = s.subtask(body)
			seen.Subtasks++
		case recordCoordinator:
			err = s.coordinator(body)
			seen.Coordinators++
		case recordChannel:
			err = s.channel(body)
			seen.Channels++
		case recordFooter:
			footer := new(snapshotpb.Footer)
			if err := s.unmarshal(body, footer); err != nil {
				return nil, err
			}
			if footer.Subtasks != seen.Subtasks || footer.Coordinators != seen.Coordinators || footer.Channels != seen.Channels {
				return nil, s.corrupt("footer counts %d subtasks, %d coordinators and %d channels, there are %d, %d and %d",
					footer.Subtasks, footer.Coordinators, footer.Channels, seen.Subtasks, seen.Coordinators, seen.Channels)
			}
			return footer, nil
		default:
			err = s.corrupt("unknown record kind %d", kind)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, s.corrupt("more than %d records", maxRecords)
}

func (s *scan) subtask(body []byte) error {
	var m snapshotpb.Subtask
	if err := s.unmarshal(body, &m); err != nil {
		return err
	}
	bad := func(err error) error {
		return s.corrupt("subtask %d of operator %q: %v", m.Subtask, m.OperatorName, err)
	}
	id, sub, err := subtaskFromPB(&m)
	if err != nil {
		return bad(err)
	}
	op, err := s.plan.fits(id, &sub)
	if err != nil {
		return bad(err)
	}
	seen := s.seen[op.ID]
	if seen == nil {
		seen = make([]uint64, (op.Parallelism+63)/64)
		s.seen[op.ID] = seen
	}
	word, bit := sub.Index/64, uint64(1)<<(sub.Index%64)
	if seen[word]&bit != 0 {
		return bad(twice(op, sub.Index))
	}
	seen[word] |= bit
	subtaskHandles(sub.State, func(h weir.StateHandle) { s.state += handleLength(h) })
	if s.visitor.Subtask != nil {
		return s.visitor.Subtask(op, &sub)
	}
	return nil
}

func (s *scan) coordinator(body []byte) error {
	var m snapshotpb.Coordinator
	if err := s.unmarshal(body, &m); err != nil {
		return err
	}
	var id [16]byte
	err := fixed(id[:], m.OperatorId, "operator id")
	if err != nil {
		return s.corrupt("coordinator of operator %q: %v", m.OperatorName, err)
	}
	op := s.plan.Operator(id)
	if op == nil || !op.Coordinator.IsZero() {
		return s.corrupt("coordinator of operator %q: the operator is unknown or has one", m.OperatorName)
	}
	if op.Coordinator, err = handleFromPB(m.State); err != nil {
		return s.corrupt("coordinator of operator %q: %v", m.OperatorName, err)
	}
	s.state += handleLength(op.Coordinator)
	if s.visitor.Coordinator != nil {
		return s.visitor.Coordinator(op)
	}
	return nil
}

func (s *scan) channel(body []byte) error {
	if s.version < metaWithChannels {
		return s.corrupt("a channel in a file of version %d", s.version)
	}
	var m snapshotpb.Channel
	if err := s.unmarshal(body, &m); err != nil {
		return err
	}
	c, err := channelFromPB(&m)
	if s.channels.any && c.Edge == s.channels.last.Edge {
		c.Edge = s.channels.last.Edge // one copy of the names
	}
	if err == nil {
		err = s.channels.next(c)
	}
	if err != nil {
		return s.corrupt("channel of operator %q: %v", m.ToOperator, err)
	}
	s.state += handleLength(c.Handle)
	if s.visitor.Channel != nil {
		return s.visitor.Channel(&c)
	}
	return nil
}

// end reads the checksum, and finds that nothing follows.
func (s *scan) end(footer *snapshotpb.Footer) error {
	want := s.crc
	var sum [4]byte
	if err := s.full(sum[:]); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(sum[:]); got != want {
		return fmt.Errorf("%w: checksum is %08x, that of the %d bytes before it is %08x", ErrCorrupt, got, s.offset-4, want)
	}
	if _, err := s.r.ReadByte(); err != io.EOF {
		if err != nil {
			return fmt.Errorf("after byte %d: %w", s.offset, err)
		}
		return s.corrupt("bytes follow the checksum")
	}
	if uint64(s.state) != footer.StateBytes {
		return s.corrupt("footer says %d bytes of state, handles have %d", footer.StateBytes, s.state)
	}
	return nil
}
