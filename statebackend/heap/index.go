package heap

const (
	firstSlots = 16
	// maxEntries of one index; beyond, it is split in two by the high bits of its
	// tags, so that no rehash moves more than this many slots.
	maxEntries = 64 << 10
	maxSlots   = 2 * maxEntries
	// maxDepth bounds the splits. An index that deep holds tags that agree in 15
	// bits, which only chosen keys do; it grows instead.
	maxDepth = 15
)

// index finds entries by tag: open addressing with linear probing. A slot holds
// the tag in its high and the page reference in its low 32 bits; 0 is empty.
// Deletion closes gaps, so there are no tombstones in an index.
type index struct {
	slots []uint64
	mask  uint32
	n     uint32 // slots in use
	limit uint32 // of n, before it must grow
	depth uint8  // number of high bits in which all tags here agree
	split bool   // of a group's first index: entries are in its shards instead
}

// noSlots are those of an empty key group's index, whose limit is 0: they are never
// written.
var noSlots = make([]uint64, 1)

func newIndex(slots int, depth uint8) index {
	limit := slots / 4 * 3
	if slots == maxSlots {
		limit = maxEntries
	}
	return index{slots: make([]uint64, slots), mask: uint32(slots - 1), depth: depth, limit: uint32(limit)}
}

// free returns the first empty slot for the tag.
func (ix *index) free(tag uint32) uint32 {
	i := tag & ix.mask
	for ix.slots[i] != 0 {
		i = (i + 1) & ix.mask
	}
	return i
}

// insert adds a slot that is not there. There must be room.
func (ix *index) insert(slot uint64) {
	ix.slots[ix.free(uint32(slot>>32))] = slot
	ix.n++
}

// remove empties slot i and moves what its chain still needs.
func (ix *index) remove(i uint32) {
	ix.n--
	for j := i; ; {
		j = (j + 1) & ix.mask
		s := ix.slots[j]
		if s == 0 {
			break
		}
		home := uint32(s>>32) & ix.mask
		if (j-home)&ix.mask >= (j-i)&ix.mask {
			ix.slots[i] = s
			i = j
		}
	}
	ix.slots[i] = 0
}

// replace makes the slot of an entry that moved name its new place.
func (ix *index) replace(tag, from, to uint32) {
	old := uint64(tag)<<32 | uint64(from)
	i := tag & ix.mask
	for ix.slots[i] != old {
		if ix.slots[i] == 0 {
			panic("heap: an entry is not in its index")
		}
		i = (i + 1) & ix.mask
	}
	ix.slots[i] = uint64(tag)<<32 | uint64(to)
}

// doubled returns the index with twice the slots.
func (ix *index) doubled() index {
	to := newIndex(2*len(ix.slots), ix.depth)
	for _, s := range ix.slots {
		if s != 0 {
			to.insert(s)
		}
	}
	return to
}

// halves returns the entries of the index in two, by the next bit of the tags.
func (ix *index) halves() (low, high *index) {
	bit := uint64(1) << (63 - ix.depth)
	highs := uint32(0)
	for _, s := range ix.slots {
		if s != 0 && s&bit != 0 {
			highs++
		}
	}
	l, h := newIndex(slotsFor(int(ix.n-highs)), ix.depth+1), newIndex(slotsFor(int(highs)), ix.depth+1)
	low, high = &l, &h
	for _, s := range ix.slots {
		switch {
		case s == 0:
		case s&bit == 0:
			low.insert(s)
		default:
			high.insert(s)
		}
	}
	return low, high
}

// slotsFor is a number of slots in which n entries leave room for a quarter more,
// as far as an index may be that large.
func slotsFor(n int) int {
	slots := firstSlots
	for slots < maxSlots && slots/4*3 < n+n/4 {
		slots *= 2
	}
	return slots
}
