package snapshotmeta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/proto/snapshotpb"
)

// A _metadata file is magic and version, then records, then a checksum:
//
//	"WEIRMETA"  8 bytes
//	version     uint32, little-endian
//	record      kind (1 byte), length (uvarint), that many bytes of protobuf
//	...         header; subtasks and coordinators in the order of the header;
//	            channels in their order; footer
//	crc32c      uint32, little-endian, of all bytes before it
//
// Version 2 is that of a file with channels; one without them is of version 1.
const (
	metaMagic        = "WEIRMETA"
	metaVersion      = 1
	metaWithChannels = 2

	recordHeader      = 1
	recordSubtask     = 2
	recordCoordinator = 3
	recordFooter      = 4
	recordChannel     = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write writes the snapshot as a _metadata file.
func Write(w io.Writer, s *Snapshot) error {
	if err := check(s); err != nil {
		return err
	}
	out := &recordWriter{w: w}
	version := uint32(metaVersion)
	if len(s.Channels) > 0 {
		version = metaWithChannels
	}
	out.raw(binary.LittleEndian.AppendUint32([]byte(metaMagic), version))
	out.record(recordHeader, maxHeader, headerToPB(&s.Header))
	footer := &snapshotpb.Footer{StateBytes: uint64(s.Bytes())}
	for i := range s.Operators {
		op := &s.Operators[i]
		if !op.Coordinator.IsZero() {
			out.record(recordCoordinator, maxRecord, coordinatorToPB(op))
			footer.Coordinators++
		}
		for j := range op.Subtasks {
			out.record(recordSubtask, maxRecord, subtaskToPB(op, &op.Subtasks[j]))
			footer.Subtasks++
		}
	}
	for _, c := range s.sortedChannels() {
		out.record(recordChannel, maxRecord, channelToPB(&c))
		footer.Channels++
	}
	out.record(recordFooter, maxRecord, footer)
	out.raw(binary.LittleEndian.AppendUint32(nil, out.crc))
	if out.err != nil {
		return fmt.Errorf("write snapshot %d: %w", s.Header.Checkpoint, out.err)
	}
	return nil
}

// recordWriter writes records and sums up; the first error stays.
type recordWriter struct {
	w   io.Writer
	crc uint32
	buf []byte
	err error
}

func (r *recordWriter) raw(b []byte) {
	if r.err != nil {
		return
	}
	r.crc = crc32.Update(r.crc, castagnoli, b)
	_, r.err = r.w.Write(b)
}

func (r *recordWriter) record(kind byte, limit int, m proto.Message) {
	if r.err != nil {
		return
	}
	size := proto.Size(m)
	if size > limit {
		r.err = fmt.Errorf("%w: a record of kind %d has %d bytes, at most %d are allowed", ErrTooLarge, kind, size, limit)
		return
	}
	r.buf = binary.AppendUvarint(append(r.buf[:0], kind), uint64(size))
	r.buf, r.err = proto.MarshalOptions{Deterministic: true}.MarshalAppend(r.buf, m)
	r.raw(r.buf)
}

// check finds what a reader would refuse.
func check(s *Snapshot) error {
	h := &s.Header
	if err := checkHeader(h); err != nil {
		return fmt.Errorf("%w: snapshot %d: %w", ErrInvalid, h.Checkpoint, err)
	}
	want := New(*h)
	if len(want.Operators) != len(s.Operators) {
		return fmt.Errorf("%w: snapshot %d has %d operators, its header names %d", ErrInvalid, h.Checkpoint, len(s.Operators), len(want.Operators))
	}
	for i := range s.Operators {
		op := &s.Operators[i]
		if op.OperatorRef != want.Operators[i].OperatorRef {
			return fmt.Errorf("%w: operator %d is %q, the header names %q", ErrInvalid, i, op.Name, want.Operators[i].Name)
		}
		for _, sub := range op.Subtasks {
			if err := want.add(weir.SubtaskID{Vertex: int32(want.Operators[i].Vertex), Subtask: sub.Index}, sub); err != nil {
				return err
			}
		}
	}
	channels := channelCheck{snapshot: s}
	for _, c := range s.sortedChannels() {
		if err := channels.next(c); err != nil {
			return err
		}
	}
	var bad error
	s.Handles(func(hd weir.StateHandle) {
		if err := checkHandle(hd); err != nil && bad == nil {
			bad = fmt.Errorf("%w: snapshot %d: %w", ErrInvalid, h.Checkpoint, err)
		}
	})
	return bad
}

// checkHeader is for writing and for reading.
func checkHeader(h *Header) error {
	switch {
	case h.Checkpoint <= 0:
		return fmt.Errorf("checkpoint id %d", h.Checkpoint)
	case h.Kind > weir.TerminateSavepoint:
		return fmt.Errorf("kind %d", h.Kind)
	case len(h.Vertices) > maxVertices:
		return fmt.Errorf("%d vertices, at most %d are allowed", len(h.Vertices), maxVertices)
	}
	seen := make(map[weir.OperatorID]bool)
	for i, v := range h.Vertices {
		if v.Parallelism < 1 || v.Parallelism > v.MaxParallelism || v.MaxParallelism > maxParallelism {
			return fmt.Errorf("vertex %d (%q) has parallelism %d of at most %d", i, v.Name, v.Parallelism, v.MaxParallelism)
		}
		for _, op := range v.Operators {
			if seen[op.ID] {
				return fmt.Errorf("operator %s (%q) occurs twice", op.ID, op.Name)
			}
			seen[op.ID] = true
		}
	}
	return nil
}

// errAbsolute refuses to write a handle that Rebase made.
var errAbsolute = errors.New("a snapshot cannot claim another job's file")
