package main

import (
	"encoding/binary"
	"hash/crc32"
)

// barePages are pages on bare memory, with as many recycled ones beside them.
type barePages struct {
	pages    []*[pageBytes]byte
	recycled []*[pageBytes]byte
	chunk    []byte
	sum      uint32
}

func newBarePages(n int) *barePages {
	b := &barePages{chunk: make([]byte, 0, 1<<20)}
	for i := range n {
		p := new([pageBytes]byte)
		for j := range p {
			p[j] = byte(i * j)
		}
		b.pages = append(b.pages, p)
		q := new([pageBytes]byte)
		copy(q[:], p[:])
		b.recycled = append(b.recycled, q)
	}
	return b
}

// copyAll copies each page into a recycled one, as a write to it would, and then
// all pages into chunks with a checksum.
func (b *barePages) copyAll() {
	for i, p := range b.pages {
		copy(b.recycled[i][:], p[:])
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	for _, p := range b.pages {
		if len(b.chunk)+len(p) > cap(b.chunk) {
			b.sum ^= crc32.Checksum(b.chunk, table)
			b.chunk = b.chunk[:0]
		}
		b.chunk = append(b.chunk, p[:]...)
	}
	b.sum ^= crc32.Checksum(b.chunk, table)
	b.chunk = b.chunk[:0]
	b.pages, b.recycled = b.recycled, b.pages
}

// bareTable counts 16-byte keys: for each key group an index by tag and pages of
// entries of 40 bytes, nothing else. No snapshot, no deletion, no other sizes.
type bareTable struct {
	groups [128]bareGroup
	sink   uint64
}

type bareGroup struct {
	slots []uint64 // tag, page and offset in the page + 1
	mask  uint32
	n     int
	pages []*[pageBytes]byte
	used  uint32 // of the last page
}

const (
	bareKey   = 8 // lengths come first
	bareValue = bareKey + keyBytes
	bareEntry = bareValue + 16
)

func newBareTable() *bareTable {
	t := &bareTable{}
	for i := range t.groups {
		t.groups[i] = bareGroup{slots: make([]uint64, 64), mask: 63, used: pageBytes}
	}
	return t
}

func (t *bareTable) group(hash uint64) *bareGroup { return &t.groups[hash>>57] }

func (g *bareGroup) grow() {
	old := g.slots
	g.slots = make([]uint64, 2*len(old))
	g.mask = uint32(len(g.slots) - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := uint32(s>>32) & g.mask
		for g.slots[i] != 0 {
			i = (i + 1) & g.mask
		}
		g.slots[i] = s
	}
}

// value finds or makes an entry and returns its value.
func (t *bareTable) value(hash uint64, key []byte) []byte {
	g, tag := t.group(hash), uint32(hash)
	i := tag & g.mask
	for ; g.slots[i] != 0; i = (i + 1) & g.mask {
		if s := g.slots[i]; uint32(s>>32) == tag {
			at := uint32(s) - 1
			p, off := g.pages[at>>12], at&(pageBytes-1)
			if n := binary.LittleEndian.Uint16(p[off:]); int(n) == len(key) && string(p[off+bareKey:off+bareValue]) == string(key) {
				return p[off+bareValue : off+bareEntry]
			}
		}
	}
	if g.used+bareEntry > pageBytes {
		g.pages = append(g.pages, new([pageBytes]byte))
		g.used = 0
	}
	p, off := g.pages[len(g.pages)-1], g.used
	binary.LittleEndian.PutUint16(p[off:], uint16(len(key)))
	copy(p[off+bareKey:], key)
	g.slots[i] = uint64(tag)<<32 | uint64(uint32(len(g.pages)-1)<<12|off) + 1
	g.used += bareEntry
	if g.n++; 4*g.n > 3*len(g.slots) {
		g.grow()
	}
	return p[off+bareValue : off+bareEntry]
}

// count counts a batch: all slots first, then all entries, then the work.
func (t *bareTable) count(hashes *[batch]uint64, names *[batch][keyBytes]byte, at int64) {
	var slots [batch]uint64
	for i, h := range hashes {
		g := t.group(h)
		slots[i] = g.slots[uint32(h)&g.mask]
	}
	sum := t.sink
	for i, h := range hashes {
		if s := uint32(slots[i]); s != 0 {
			sum += uint64(t.group(h).pages[(s-1)>>12][(s-1)&(pageBytes-1)])
		}
	}
	t.sink = sum
	for i, h := range hashes {
		addTo(t.value(h, names[i][:]), at)
	}
}

// addTo counts in a value.
func addTo(v []byte, at int64) {
	_ = v[15]
	binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
	binary.LittleEndian.PutUint64(v[8:], uint64(at))
}
