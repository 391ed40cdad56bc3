package buffer

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/assert"
)

// Sizes of a segment, in bytes (DECISIONS 16).
const (
	BlockSize  = 32768                  // the whole block
	HeaderSize = 64                     // reserved at its start for a frame's header
	Capacity   = BlockSize - HeaderSize // what it can carry
)

// Recycler takes a buffer back when nobody refers to it any more.
type Recycler interface{ Recycle(b *Buffer) }

// Buffer is a reference-counted segment, or bytes wrapped by [Wrap]. One goroutine
// fills it; any goroutine may read what is committed.
type Buffer struct {
	data      []byte       // the writable bytes: Capacity of a segment's block
	committed atomic.Int32 // bytes of data that readers may see; only grows
	refs      atomic.Int32
	recycler  Recycler // nil for wrapped bytes
	base      int64    // base timestamp; set before the first commit
	account   int      // of the pool: which account it is charged to
	excess    bool     // it exceeds its pool: nobody uses it again
}

// newBuffer is a segment without references.
func newBuffer() *Buffer { return &Buffer{data: make([]byte, BlockSize)[HeaderSize:]} }

// Wrap makes a buffer of bytes that belong to no pool, for example an event's. All
// of them are committed, and must not change any more.
func Wrap(b []byte) *Buffer {
	w := &Buffer{data: b}
	w.committed.Store(int32(len(b)))
	w.refs.Store(1)
	return w
}

// Data is the area that the filling goroutine writes to.
func (b *Buffer) Data() []byte { return b.data }

// SetBase sets the timestamp against which the deltas of the elements that begin
// in this buffer count. It is called before the buffer is handed to anybody.
func (b *Buffer) SetBase(timestamp int64) { b.base = timestamp }

// Base is the base timestamp.
func (b *Buffer) Base() int64 { return b.base }

// Commit lets readers see the first n bytes. Only the filling goroutine calls it.
func (b *Buffer) Commit(n int) {
	assert.That(n >= int(b.committed.Load()) && n <= len(b.data), "commit %d of %d after %d", n, len(b.data), b.committed.Load())
	b.committed.Store(int32(n))
}

// Committed is the number of bytes that readers may see.
func (b *Buffer) Committed() int { return int(b.committed.Load()) }

// Retain adds a reference.
func (b *Buffer) Retain() {
	n := b.refs.Add(1)
	assert.That(n > 1, "retain of a released buffer")
}

// Release drops a reference; the last one gives the buffer to its recycler.
func (b *Buffer) Release() {
	n := b.refs.Add(-1)
	assert.That(n >= 0, "release of a released buffer")
	if n == 0 && b.recycler != nil {
		b.recycler.Recycle(b)
	}
}

// SetRecycler names who takes the buffer back instead of the pool it came from. It
// is called by the only holder.
func (b *Buffer) SetRecycler(r Recycler) { b.recycler = r }

// reset makes a recycled buffer new, with one reference.
func (b *Buffer) reset(r Recycler) {
	assert.That(b.refs.Load() == 0, "reset of a buffer with %d references", b.refs.Load())
	b.committed.Store(0)
	b.refs.Store(1)
	b.recycler, b.base = r, 0
}

// Excess says that the buffer exceeds its pool.
func (b *Buffer) Excess() bool { return b.excess }

// Renew makes a buffer that was given to a recycler usable again without going
// through its pool. Only the recycler it was given to calls it.
func (b *Buffer) Renew() {
	b.mangle()
	b.reset(b.recycler)
}

// mangle overwrites recycled memory with what decodes to nothing sensible.
func (b *Buffer) mangle() {
	if !assert.Enabled {
		return
	}
	for i := range b.data {
		b.data[i] = 0xDB
	}
}

// View is a run of committed bytes of a buffer together with one reference to it.
// It is moved, never copied into two hands; the zero View holds nothing.
type View struct {
	buf *Buffer
	off int32
	end int32
}

// View returns the committed bytes [off, end) with a new reference.
func (b *Buffer) View(off, end int) View {
	assert.That(0 <= off && off <= end && end <= b.Committed(), "view [%d,%d) of %d", off, end, b.Committed())
	b.Retain()
	return View{buf: b, off: int32(off), end: int32(end)}
}

// Own returns all committed bytes with the caller's own reference.
func (b *Buffer) Own() View { return View{buf: b, end: int32(b.Committed())} }

// OwnFrom returns the committed bytes from off on with the caller's own reference.
func (b *Buffer) OwnFrom(off int) View {
	end := b.Committed()
	assert.That(0 <= off && off <= end, "view [%d,%d)", off, end)
	return View{buf: b, off: int32(off), end: int32(end)}
}

// Clone returns the same bytes with a new reference.
func (v View) Clone() View {
	if v.buf != nil {
		v.buf.Retain()
	}
	return v
}

// IsZero says whether the view holds nothing.
func (v View) IsZero() bool { return v.buf == nil }

// Len is the number of bytes.
func (v View) Len() int { return int(v.end - v.off) }

// Bytes are the bytes, valid until Release. Nobody writes to them.
func (v View) Bytes() []byte {
	if v.buf == nil {
		return nil
	}
	return v.buf.data[v.off:v.end:v.end]
}

// Base is the base timestamp of the buffer.
func (v View) Base() int64 { return v.buf.base }

// Release drops the reference. On a zero view it does nothing.
func (v View) Release() {
	if v.buf != nil {
		v.buf.Release()
	}
}
