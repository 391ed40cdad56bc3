package main

import (
	"encoding/binary"
	"unsafe"
)

const (
	batchSize = 64
	keyGroups = 128
	pageBytes = 4096
)

// table counts keys of 16 bytes: for each key group an index by tag and pages of
// entries of 40 bytes, nothing else. No snapshot, no deletion, no other sizes.
type table struct {
	groups [keyGroups]group
	sum    uint64
}

type group struct {
	slots []uint64 // tag, page and offset in the page + 1
	mask  uint32
	n     int
	pages []*[pageBytes]byte
	used  uint32 // of the last page
}

const (
	entryKey   = 8 // lengths come first
	entryValue = entryKey + keyBytes
	entryBytes = entryValue + 16
)

func newTable() *table {
	t := &table{}
	for i := range t.groups {
		t.groups[i] = group{slots: make([]uint64, 64), mask: 63, used: pageBytes}
	}
	return t
}

func (t *table) group(hash uint64) *group { return &t.groups[hash>>57] }

func (g *group) grow() {
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
func (t *table) value(hash uint64, key string) *total {
	g, tag := t.group(hash), uint32(hash)
	i := tag & g.mask
	for ; g.slots[i] != 0; i = (i + 1) & g.mask {
		if s := g.slots[i]; uint32(s>>32) == tag {
			at := uint32(s) - 1
			p, off := g.pages[at>>12], at&(pageBytes-1)
			if n := binary.LittleEndian.Uint16(p[off:]); int(n) == len(key) && string(p[off+entryKey:off+entryValue]) == key {
				return (*total)(unsafe.Pointer(&p[off+entryValue]))
			}
		}
	}
	if g.used+entryBytes > pageBytes {
		g.pages = append(g.pages, new([pageBytes]byte))
		g.used = 0
	}
	p, off := g.pages[len(g.pages)-1], g.used
	binary.LittleEndian.PutUint16(p[off:], uint16(len(key)))
	copy(p[off+entryKey:], key)
	g.slots[i] = uint64(tag)<<32 | uint64(uint32(len(g.pages)-1)<<12|off) + 1
	g.used += entryBytes
	if g.n++; 4*g.n > 3*len(g.slots) {
		g.grow()
	}
	return (*total)(unsafe.Pointer(&p[off+entryValue]))
}

// touch loads the slots of all keys, then their entries, so that misses overlap.
func (t *table) touch(hashes []uint64) {
	var slots [batchSize]uint64
	for i, h := range hashes {
		g := t.group(h)
		slots[i] = g.slots[uint32(h)&g.mask]
	}
	sum := t.sum
	for i, h := range hashes {
		if s := uint32(slots[i]); s != 0 {
			sum += uint64(t.group(h).pages[(s-1)>>12][(s-1)&(pageBytes-1)])
		}
	}
	t.sum = sum
}
