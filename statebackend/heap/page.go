package heap

import (
	"encoding/binary"
	"unsafe"
)

const (
	pageSize   = 4096
	pageHeader = 8
	pageRoom   = pageSize - pageHeader

	// unit is the alignment of entries. A page reference is the page's number and
	// the entry's offset in units; offset 0 is the page's header, so that the
	// reference 0 names nothing.
	unit          = 8
	pageUnitBits  = 9 // pageSize / unit = 1 << pageUnitBits
	pageUnitMask  = 1<<pageUnitBits - 1
	maxPageNumber = 1<<(32-pageUnitBits) - 1
)

// page holds entries, pointer-free and little-endian:
//
//	0  uint32  used: bytes of the page in use, this header included
//	4  uint32  dead: bytes of entries that are tombstones
//	8  entries, each aligned to 8
//
// An entry larger than a page has pages of its own, which lie side by side in
// memory; used is then larger than pageSize and the entry is alone.
type page struct {
	_ [0]uint64 // values of fixed size are aligned like a uint64
	b [pageSize]byte
}

func (p *page) used() int     { return int(binary.LittleEndian.Uint32(p.b[0:])) }
func (p *page) dead() int     { return int(binary.LittleEndian.Uint32(p.b[4:])) }
func (p *page) setUsed(n int) { binary.LittleEndian.PutUint32(p.b[0:], uint32(n)) }
func (p *page) setDead(n int) { binary.LittleEndian.PutUint32(p.b[4:], uint32(n)) }

// reset makes the page empty. What is beyond used is never read.
func (p *page) reset() {
	p.setUsed(pageHeader)
	p.setDead(0)
}

// span returns n bytes from off, which may reach into the pages that follow a
// large entry's first one.
func (p *page) span(off, n int) []byte {
	if off+n <= pageSize {
		return p.b[off : off+n : off+n]
	}
	return unsafe.Slice(&p.b[0], off+n)[off : off+n : off+n]
}

// at is the byte at an offset, which must be in the page. Unlike p.b[off] it does not
// read the page's first byte to see that p is not nil, which would bring a cache line
// for nothing.
func (p *page) at(off int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), off)) }

// fixedSpan is span for what does not reach beyond the page, by way of at.
func (p *page) fixedSpan(off, n int) []byte { return unsafe.Slice(p.at(off), n) }

// entry is the place of an entry by its page reference.
func (p *page) entry(ref uint32) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(p), ref&pageUnitMask*unit)
}

// pageRef is an element of a key group's directory of pages.
type pageRef struct {
	p     *page  // nil: the number is free
	birth uint32 // the epoch in which the page became the table's own
	units uint32 // 1, or the number of pages that a large entry has to itself
}
