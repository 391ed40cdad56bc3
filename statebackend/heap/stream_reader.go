package heap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

// streamReader hands out the payload of a stream, chunk by chunk, each only after
// its checksum was verified. Memory is taken as bytes arrive, never for a length
// that was merely claimed.
type streamReader struct {
	r     io.Reader
	chunk []byte // what is left of the chunk at hand
	buf   []byte // its memory
	ended bool   // the empty chunk was read
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", statebackend.ErrCorrupt, fmt.Sprintf(format, args...))
}

// cut turns an end of input where bytes should follow into corruption; other
// errors of the source stay what they are.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt("cut short")
	}
	return err
}

func newStreamReader(r io.Reader) (*streamReader, error) {
	var start [streamStart]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return nil, cut(err)
	}
	if string(start[:len(streamMagic)]) != streamMagic {
		return nil, corrupt("does not start with %s", streamMagic)
	}
	if v := binary.LittleEndian.Uint32(start[len(streamMagic):]); v != streamVersion {
		return nil, fmt.Errorf("%w: heap stream version %d", statebackend.ErrUnsupported, v)
	}
	return &streamReader{r: r}, nil
}

// next reads a chunk.
func (s *streamReader) next() error {
	if s.ended {
		return corrupt("ends inside of a section")
	}
	var head [chunkHeader]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return cut(err)
	}
	n := int(binary.LittleEndian.Uint32(head[0:]))
	if n > maxChunk {
		return corrupt("chunk of %d bytes", n)
	}
	if err := s.fill(n); err != nil {
		return cut(err)
	}
	if crc32.Checksum(s.chunk, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return corrupt("checksum of a chunk of %d bytes", n)
	}
	s.ended = n == 0
	return nil
}

func (s *streamReader) fill(n int) error {
	const step = 64 << 10
	s.buf = s.buf[:0]
	for len(s.buf) < n {
		have := len(s.buf)
		if cap(s.buf) == have {
			s.buf = append(s.buf, make([]byte, min(n-have, max(have, step)))...)
		}
		s.buf = s.buf[:min(n, cap(s.buf))]
		if _, err := io.ReadFull(s.r, s.buf[have:]); err != nil {
			return err
		}
	}
	s.chunk = s.buf
	return nil
}

// read appends n bytes of payload to b.
func (s *streamReader) read(b []byte, n int) ([]byte, error) {
	for {
		take := min(n, len(s.chunk))
		b = append(b, s.chunk[:take]...)
		s.chunk = s.chunk[take:]
		if n -= take; n == 0 {
			return b, nil
		}
		if err := s.next(); err != nil {
			return b, err
		}
	}
}

func (s *streamReader) skip(n int) error {
	for {
		take := min(n, len(s.chunk))
		s.chunk = s.chunk[take:]
		if n -= take; n == 0 {
			return nil
		}
		if err := s.next(); err != nil {
			return err
		}
	}
}

func (s *streamReader) u32() (uint32, error) {
	var room [4]byte
	b, err := s.read(room[:0], 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (s *streamReader) u64() (uint64, error) {
	var room [8]byte
	b, err := s.read(room[:0], 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (s *streamReader) text(what string, most int) (string, error) {
	n, err := s.u32()
	if err != nil {
		return "", err
	}
	if int64(n) > int64(most) {
		return "", corrupt("%s of %d bytes", what, n)
	}
	b, err := s.read(nil, int(n))
	return string(b), err
}

// end checks that the stream is over and nothing follows. It reads the source to
// its end, where the handle's own checksum is verified.
func (s *streamReader) end() error {
	for !s.ended {
		if len(s.chunk) > 0 {
			return corrupt("%d bytes after the last section", len(s.chunk))
		}
		if err := s.next(); err != nil {
			return err
		}
	}
	var one [1]byte
	switch n, err := io.ReadFull(s.r, one[:]); {
	case n > 0:
		return corrupt("bytes after the end")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// streamHeader is the beginning of the payload.
type streamHeader struct {
	maxParallelism int
	groups         weir.KeyGroupRange
	tables         int
}

func (s *streamReader) header() (streamHeader, error) {
	var v [4]uint32
	for i := range v {
		n, err := s.u32()
		if err != nil {
			return streamHeader{}, err
		}
		v[i] = n
	}
	h := streamHeader{
		maxParallelism: int(v[0]),
		groups:         weir.KeyGroupRange{First: int32(v[1]), Last: int32(v[2])},
		tables:         int(v[3]),
	}
	switch {
	case v[0] < 1 || v[0] > weir.MaxMaxParallelism:
		return h, corrupt("maximum parallelism %d", v[0])
	case h.groups.Len() > 0 && (h.groups.First < 0 || int(h.groups.Last) >= h.maxParallelism):
		return h, corrupt("key groups %v of %d", h.groups, h.maxParallelism)
	case v[3] > maxTables:
		return h, corrupt("%d tables", v[3])
	}
	return h, nil
}

// streamTable is a table's descriptor in the stream.
type streamTable struct {
	lay    layout
	schema weir.StateSchema
}

func (s *streamReader) descriptor() (streamTable, error) {
	var v [4]uint32
	for i := range v {
		n, err := s.u32()
		if err != nil {
			return streamTable{}, err
		}
		v[i] = n
	}
	kind, align, keyOff, fixed := v[0], v[1], v[2], v[3]
	if fixed > statebackend.MaxFixedSize || (kind == layoutFixed) != (fixed > 0) {
		return streamTable{}, corrupt("layout %d with values of %d bytes", kind, fixed)
	}
	t := streamTable{lay: layoutOf(int(fixed))}
	if kind != layoutFixed && kind != layoutVariable || align != unit || int(keyOff) != t.lay.keyOff {
		return t, fmt.Errorf("%w: heap layout %d, aligned to %d, key at %d", statebackend.ErrUnsupported, kind, align, keyOff)
	}
	for _, f := range []struct {
		to   *string
		what string
		most int
	}{
		{&t.schema.State, "state name", maxNameBytes},
		{&t.schema.Key, "key schema", maxSchemaBytes},
		{&t.schema.Value, "value schema", maxSchemaBytes},
	} {
		text, err := s.text(f.what, f.most)
		if err != nil {
			return t, err
		}
		*f.to = text
	}
	if t.schema.State == "" {
		return t, corrupt("state without a name")
	}
	return t, nil
}
