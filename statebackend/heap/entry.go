package heap

import (
	"encoding/binary"
	"math/bits"
)

// An entry, aligned to 8 bytes:
//
//	0  uint16  bytes of the key; the high bit marks a tombstone
//	2  uint16  bytes of the namespace
//	4  uint32  tag: the low 32 bits of the key's hash
//
// then, in a table of fixed-size values, the value, the key, the namespace; in a
// table of variable-size values
//
//	8  uint32  bytes of the value
//	12 uint32  bytes kept for the value
//	16 key, namespace, room for the value
//
// and padding up to a multiple of 8.
const (
	entryHeader    = 8
	variableHeader = 16
	tombstone      = 1 << 15
)

// layout places the parts of a table's entries.
type layout struct {
	fixed  int // bytes of every value, or 0
	keyOff int // of the key from the entry's start
}

func layoutOf(fixedSize int) layout {
	if fixedSize == 0 {
		return layout{keyOff: variableHeader}
	}
	return layout{fixed: fixedSize, keyOff: entryHeader + fixedSize}
}

// header is the first eight bytes of an entry.
type header uint64

func makeHeader(tag uint32, key, namespace []byte) header {
	return header(len(key)) | header(len(namespace))<<16 | header(tag)<<32
}

func (h header) key() int       { return int(h & (tombstone - 1)) }
func (h header) namespace() int { return int(h >> 16 & 0xffff) }
func (h header) tag() uint32    { return uint32(h >> 32) }
func (h header) dead() bool     { return h&tombstone != 0 }

func headerAt(p *page, off int) header {
	return header(binary.LittleEndian.Uint64(p.b[off : off+8]))
}

// size is the number of bytes of an entry, padding included. room is what is kept
// for a variable-size value.
func (l layout) size(key, namespace, room int) int {
	return (l.keyOff + key + namespace + room + unit - 1) &^ (unit - 1)
}

// sizeAt is the size of the entry at off.
func (l layout) sizeAt(p *page, off int) int {
	h := headerAt(p, off)
	room := 0
	if l.fixed == 0 {
		room = int(binary.LittleEndian.Uint32(p.b[off+12 : off+16]))
	}
	return l.size(h.key(), h.namespace(), room)
}

// parts cuts an entry of the layout. Slices alias it.
func (l layout) parts(entry []byte) (h header, key, namespace, value []byte) {
	h = header(binary.LittleEndian.Uint64(entry))
	k, n := h.key(), h.namespace()
	key = entry[l.keyOff : l.keyOff+k : l.keyOff+k]
	nsOff := l.keyOff + k
	namespace = entry[nsOff : nsOff+n : nsOff+n]
	if l.fixed > 0 {
		return h, key, namespace, entry[entryHeader : entryHeader+l.fixed : entryHeader+l.fixed]
	}
	valOff, valLen := nsOff+n, int(binary.LittleEndian.Uint32(entry[8:]))
	return h, key, namespace, entry[valOff : valOff+valLen : valOff+valLen]
}

// slotTag is the tag under which an entry stands in the index. It mixes in the
// namespace, so that the many namespaces of one key (its timers, say) do not form
// one probe chain. It never leaves the process: restore rebuilds the indices.
func slotTag(tag uint32, namespace []byte) uint32 {
	if len(namespace) == 0 {
		return tag
	}
	return mixNamespace(tag, namespace)
}

func mixNamespace(tag uint32, ns []byte) uint32 {
	const k0, k1, k2 = 0x9e3779b97f4a7c15, 0xd1b54a32d192ed03, 0x8cb92ba72f3d8dd7
	h := (uint64(tag)<<32 | uint64(len(ns))) ^ k0
	for len(ns) >= 8 {
		h = fold(h^binary.LittleEndian.Uint64(ns)^k1, k2)
		ns = ns[8:]
	}
	if len(ns) > 0 {
		var w uint64
		for i, c := range ns {
			w |= uint64(c) << (8 * i)
		}
		h = fold(h^w^k1, k2)
	}
	h = fold(h^k0, k1)
	return uint32(h>>32) ^ uint32(h)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo ^ a
}
