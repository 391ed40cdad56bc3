package snapshotmeta

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/weirflow/weir"
)

// What one end of a channel captured is one handle, for example a section of a state
// file: magic and version, then chunks to its end.
//
//	"WEIRCHAN"   8 bytes
//	version      uint32, little-endian
//	chunk...     uint32 n, uint32 crc32c of base and bytes, int64 base, n bytes
//
// The bytes are elements as they are on the wire; where one chunk ends and the next
// begins has no meaning for them.
const (
	channelMagic   = "WEIRCHAN"
	channelVersion = 1

	channelHeadSize = 12
	chunkHeadSize   = 16
)

// ChannelStateWriter writes what one end of one channel captured. For one goroutine.
type ChannelStateWriter struct {
	w    io.Writer
	head [chunkHeadSize]byte
}

// NewChannelStateWriter begins with magic and version. w is a section of a state file,
// for example.
func NewChannelStateWriter(w io.Writer) (*ChannelStateWriter, error) {
	if _, err := w.Write(binary.LittleEndian.AppendUint32([]byte(channelMagic), channelVersion)); err != nil {
		return nil, err
	}
	return &ChannelStateWriter{w: w}, nil
}

// Chunk writes bytes whose elements have timestamps against base.
func (c *ChannelStateWriter) Chunk(base int64, b []byte) error {
	for len(b) > 0 {
		part := b[:min(len(b), maxChunk)]
		b = b[len(part):]
		binary.LittleEndian.PutUint32(c.head[0:], uint32(len(part)))
		binary.LittleEndian.PutUint64(c.head[8:], uint64(base))
		binary.LittleEndian.PutUint32(c.head[4:], chunkCRC(c.head[8:], part))
		if _, err := c.w.Write(c.head[:]); err != nil {
			return err
		}
		if _, err := c.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func chunkCRC(base, b []byte) uint32 {
	return crc32.Update(crc32.Checksum(base, castagnoli), castagnoli, b)
}

// ChannelStateReader reads what one end of one channel captured: chunks in the order
// of capture. For one goroutine.
type ChannelStateReader struct {
	r    io.ReadCloser
	name string // of the handle, for errors
	head [chunkHeadSize]byte
	b    []byte // the chunk's bytes
	err  error  // the first one
}

// OpenChannelState opens the handle of a weir.ChannelStateHandle.
func (f Files) OpenChannelState(ctx context.Context, h weir.StateHandle) (*ChannelStateReader, error) {
	r, err := f.Open(ctx, h)
	if err != nil {
		return nil, err
	}
	c := &ChannelStateReader{r: r, name: describe(h)}
	if err := c.begin(); err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("channel %s: %w", c.name, err)
	}
	return c, nil
}

func (c *ChannelStateReader) begin() error {
	var head [channelHeadSize]byte
	n, err := io.ReadFull(c.r, head[:])
	if k := min(n, len(channelMagic)); string(head[:k]) != channelMagic[:k] {
		return fmt.Errorf("%w: it begins with %q, not %q", ErrNotSnapshot, head[:k], channelMagic)
	}
	if err != nil {
		return cutOff(err)
	}
	switch version := binary.LittleEndian.Uint32(head[len(channelMagic):]); {
	case version == 0:
		return fmt.Errorf("%w: format version 0", ErrCorrupt)
	case version > channelVersion:
		return fmt.Errorf("%w: format version %d, this program reads up to %d", ErrNewerVersion, version, channelVersion)
	}
	return nil
}

// Next returns the next chunk: bytes, valid until the next call, and the base timestamp
// of elements that begin in them (a wire.Cutter is fed with both). They are verified.
// At the end, when all is known to be there, it returns io.EOF.
func (c *ChannelStateReader) Next() (base int64, b []byte, err error) {
	if c.err == nil {
		base, c.err = c.next()
	}
	switch {
	case errors.Is(c.err, io.EOF):
		return 0, nil, io.EOF
	case c.err != nil:
		return 0, nil, fmt.Errorf("channel %s: %w", c.name, c.err)
	}
	return base, c.b, nil
}

func (c *ChannelStateReader) next() (base int64, err error) {
	if n, err := io.ReadFull(c.r, c.head[:]); err != nil {
		if n == 0 {
			return 0, err // io.EOF, or what is wrong with the whole
		}
		return 0, cutOff(err)
	}
	n := binary.LittleEndian.Uint32(c.head[0:])
	if n == 0 || n > maxChunk {
		return 0, fmt.Errorf("%w: chunk of %d bytes", ErrCorrupt, n)
	}
	if cap(c.b) < int(n) {
		c.b = make([]byte, n)
	}
	c.b = c.b[:n]
	if _, err := io.ReadFull(c.r, c.b); err != nil {
		return 0, cutOff(err)
	}
	if got, want := chunkCRC(c.head[8:], c.b), binary.LittleEndian.Uint32(c.head[4:]); got != want {
		return 0, fmt.Errorf("%w: chunk has checksum %08x, its head says %08x", ErrCorrupt, got, want)
	}
	return int64(binary.LittleEndian.Uint64(c.head[8:])), nil
}

// cutOff is the error of a read that came to an end too early.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w inside a chunk", ErrTruncated)
	}
	return err
}

// Close ends reading.
func (c *ChannelStateReader) Close() error { return c.r.Close() }
