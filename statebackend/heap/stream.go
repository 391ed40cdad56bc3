package heap

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// The heap snapshot stream, version 1: see docs/formats.md. All numbers are
// little-endian.
const (
	streamMagic   = "WEIRHEAP"
	streamVersion = 1
	streamStart   = len(streamMagic) + 4

	chunkHeader = 8       // length and crc32c of the payload
	maxChunk    = 1 << 20 // bytes of payload

	sectionBytes   = 20
	maxNameBytes   = 4 << 10
	maxSchemaBytes = 1 << 20
	maxTables      = 1 << 16

	layoutFixed    = 1
	layoutVariable = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// streamWriter cuts what is appended into chunks with a checksum each. Errors
// stick, and finish returns them.
type streamWriter struct {
	ctx     func() error // why to stop, if to
	w       io.Writer
	buf     []byte // the chunk at hand; its header comes first
	written int64
	err     error
}

// newStreamWriter starts a stream whose payload has about size bytes.
func newStreamWriter(ctx context.Context, w io.Writer, size int) (*streamWriter, error) {
	s := &streamWriter{ctx: ctx.Err, w: w}
	s.buf = make([]byte, 0, chunkHeader+min(size, maxChunk))
	s.buf = append(s.buf, streamMagic...)
	s.buf = binary.LittleEndian.AppendUint32(s.buf, streamVersion)
	s.write()
	s.start()
	return s, s.err
}

func (s *streamWriter) start() { s.buf = append(s.buf[:0], 0, 0, 0, 0, 0, 0, 0, 0) }

func (s *streamWriter) write() {
	if s.err == nil {
		s.err = s.ctx()
	}
	if s.err != nil {
		return
	}
	n, err := s.w.Write(s.buf)
	s.written += int64(n)
	if err == nil && n < len(s.buf) {
		err = io.ErrShortWrite
	}
	s.err = err
}

// flush writes the chunk at hand.
func (s *streamWriter) flush() {
	payload := s.buf[chunkHeader:]
	binary.LittleEndian.PutUint32(s.buf[0:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(s.buf[4:], crc32.Checksum(payload, castagnoli))
	s.write()
	s.start()
}

// finish writes the last chunk and the empty one that ends the stream.
func (s *streamWriter) finish() error {
	if len(s.buf) > chunkHeader {
		s.flush()
	}
	s.flush()
	return s.err
}

// bytes appends to the payload.
func (s *streamWriter) bytes(b []byte) {
	for {
		room := chunkHeader + maxChunk - len(s.buf)
		if len(b) < room {
			s.buf = append(s.buf, b...)
			return
		}
		s.buf = append(s.buf, b[:room]...)
		b = b[room:]
		s.flush()
		if s.err != nil {
			return
		}
	}
}

func (s *streamWriter) u32(v uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	s.bytes(b[:])
}

func (s *streamWriter) u64(v uint64) {
	s.u32(uint32(v))
	s.u32(uint32(v >> 32))
}

func (s *streamWriter) text(v string) {
	s.u32(uint32(len(v)))
	s.bytes([]byte(v))
}

func (s *streamWriter) descriptor(t *capturedTable) {
	kind := uint32(layoutFixed)
	if t.lay.fixed == 0 {
		kind = layoutVariable
	}
	s.u32(kind)
	s.u32(unit)
	s.u32(uint32(t.lay.keyOff))
	s.u32(uint32(t.lay.fixed))
	s.text(t.name)
	s.text(t.schema.Key)
	s.text(t.schema.Value)
}

func (s *streamWriter) section(table int, g *capturedGroup) {
	s.u32(uint32(table) + 1)
	s.u32(uint32(g.group))
	s.u64(uint64(g.entries))
}

// page appends the live entries of a page as one run.
func (s *streamWriter) page(lay layout, p *page) {
	used, dead := p.used(), p.dead()
	if used-pageHeader == dead || s.err != nil {
		return
	}
	s.u32(uint32(used - pageHeader - dead))
	if dead == 0 {
		s.bytes(p.span(pageHeader, used-pageHeader))
		return
	}
	for off := pageHeader; off < used; {
		size := lay.sizeAt(p, off)
		if !headerAt(p, off).dead() {
			s.bytes(p.span(off, size))
		}
		off += size
	}
}
