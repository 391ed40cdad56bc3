package heap

import (
	"encoding/binary"

	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
)

const noPage = ^uint32(0)

// sparse is the number of dead bytes beyond which a page's entries are moved
// together, so that pages are at least half full.
const sparse = pageRoom / 2

// group is the part of a table that belongs to one key group: pages of entries
// and the indices that find them. Only methods of the table's own goroutine touch
// it; what an outstanding snapshot has captured of it is never written.
//
// What a lookup needs comes first and fills one cache line.
type group struct {
	first index     // of all entries, until it is split
	dir   []pageRef // by page number

	shards   []*index // after a split: by the high bits of the tag; 1 << depth of the deepest
	unused   []uint32 // page numbers without a page
	shift    uint32   // 32 - log2(len(shards))
	tail     uint32   // the page that takes new entries, or noPage
	dirBirth uint32   // epoch in which dir became the table's own
	_        uint32
	entries  int
	dead     int // bytes of tombstones
	pages    int
	slots    int // in all indices
	_        [4]uint64
}

func (g *group) reset() {
	*g = group{first: index{slots: noSlots}, shift: 32, tail: noPage}
}

func (g *group) index(tag uint32) *index {
	if g.first.split {
		return g.shards[tag>>g.shift]
	}
	return &g.first
}

// makeRoom grows or splits the tag's index until it takes one more entry. The
// caller counts a new version.
func (g *group) makeRoom(tag uint32) *index {
	for {
		ix := g.index(tag)
		switch {
		case ix.n < ix.limit:
			return ix
		case ix.limit == 0:
			*ix = newIndex(firstSlots, 0)
			g.slots = firstSlots
		case len(ix.slots) < maxSlots || ix.depth == maxDepth:
			g.slots += len(ix.slots)
			*ix = ix.doubled()
		default:
			g.split(tag, ix)
		}
	}
}

// split puts the halves of the tag's index in its place.
func (g *group) split(tag uint32, old *index) {
	low, high := old.halves()
	g.slots += len(low.slots) + len(high.slots) - len(old.slots)
	if !g.first.split {
		g.first = index{slots: noSlots, split: true}
		g.shards = []*index{low, high}
		g.shift = 31
		return
	}
	if uint32(old.depth) == 32-g.shift {
		wide := make([]*index, 2*len(g.shards))
		for i := range wide {
			wide[i] = g.shards[i/2]
		}
		g.shards = wide
		g.shift--
	}
	n := len(g.shards) >> old.depth
	from := int(tag>>g.shift) &^ (n - 1)
	for i := range n {
		g.shards[from+i] = low
		if i >= n/2 {
			g.shards[from+i] = high
		}
	}
}

// writable returns a page for writing, copying it if an outstanding snapshot holds it.
func (t *PageTable) writable(g *group, number uint32) *page {
	r := &g.dir[number]
	if r.birth >= t.led.fence.Load() {
		return r.p
	}
	return t.copyPage(g, number)
}

func (t *PageTable) copyPage(g *group, number uint32) *page {
	if planted.Is(planted.SnapshotNotCopied) {
		return g.dir[number].p
	}
	t.ownDir(g)
	old := g.dir[number]
	p := t.takePages(int(old.units))
	used := old.p.used()
	copy(p.span(0, used), old.p.span(0, used))
	g.dir[number] = pageRef{p: p, birth: t.own.epoch, units: old.units}
	t.led.retire(old)
	return p
}

// ownDir makes the directory the table's own before one of its elements changes.
// Elements beyond what a snapshot captured may be appended without.
func (t *PageTable) ownDir(g *group) {
	if g.dirBirth >= t.led.fence.Load() {
		return
	}
	dir := make([]pageRef, len(g.dir), len(g.dir)+len(g.dir)/4+4)
	copy(dir, g.dir)
	g.dir, g.dirBirth = dir, t.own.epoch
}

// alloc takes size bytes, a multiple of the unit, for an entry. It may move
// entries that are not dead, but not what the indices know of them by slot.
func (t *PageTable) alloc(g *group, size int) (ref uint32, p *page) {
	if size > pageRoom {
		number := t.addPage(g, (size+pageHeader+pageSize-1)/pageSize)
		p = g.dir[number].p
		p.setUsed(pageHeader + size)
		return number<<pageUnitBits | pageHeader/unit, p
	}
	for {
		if g.tail != noPage {
			if used := g.dir[g.tail].p.used(); used+size <= pageSize {
				p = t.writable(g, g.tail)
				p.setUsed(used + size)
				return g.tail<<pageUnitBits | uint32(used/unit), p
			}
		}
		full := g.tail
		g.tail = t.addPage(g, 1)
		if full != noPage && g.dir[full].p.dead() > sparse {
			t.compact(g, full, 0)
		}
	}
}

// addPage puts new pages into the directory, under one number.
func (t *PageTable) addPage(g *group, units int) uint32 {
	r := pageRef{p: t.takePages(units), birth: t.own.epoch, units: uint32(units)}
	g.pages += units
	if n := len(g.unused); n > 0 {
		t.ownDir(g)
		number := g.unused[n-1]
		g.unused = g.unused[:n-1]
		g.dir[number] = r
		return number
	}
	assert.That(len(g.dir) <= maxPageNumber, "heap: state %s has %d pages in one key group", t.name, len(g.dir))
	g.dir = append(g.dir, r)
	return uint32(len(g.dir) - 1)
}

// dropPage takes a page out of the directory.
func (t *PageTable) dropPage(g *group, number uint32) {
	t.ownDir(g)
	r := g.dir[number]
	g.dir[number] = pageRef{}
	g.unused = append(g.unused, number)
	g.pages -= int(r.units)
	t.discard(r)
}

// kill makes an entry that no index names a tombstone, or gives its page back or
// moves the page's other entries if little else is in it.
func (t *PageTable) kill(g *group, ref uint32) {
	number, off := ref>>pageUnitBits, int(ref&pageUnitMask)*unit
	r := g.dir[number]
	if r.units > 1 {
		t.dropPage(g, number)
		return
	}
	size := t.lay.sizeAt(r.p, off)
	if number != g.tail && r.p.dead()+size > sparse {
		t.compact(g, number, ref)
		return
	}
	p := t.writable(g, number)
	dead := p.dead() + size
	if number == g.tail && dead == p.used()-pageHeader {
		g.dead -= p.dead()
		p.reset()
		return
	}
	h := headerAt(p, off) | tombstone
	binary.LittleEndian.PutUint64(p.b[off:], uint64(h))
	p.setDead(dead)
	g.dead += size
}

// compact moves the live entries of a page, except the one that is being killed,
// to the tail, and drops the page.
func (t *PageTable) compact(g *group, number, except uint32) {
	src := g.dir[number].p
	t.moved()
	for off, end := pageHeader, src.used(); off < end; {
		size := t.lay.sizeAt(src, off)
		from := number<<pageUnitBits | uint32(off/unit)
		if h := headerAt(src, off); !h.dead() && from != except {
			to, dst := t.alloc(g, size)
			dstOff := int(to&pageUnitMask) * unit
			copy(dst.b[dstOff:dstOff+size], src.b[off:off+size])
			_, _, namespace, _ := t.lay.parts(src.b[off : off+size])
			tag := slotTag(h.tag(), namespace)
			g.index(tag).replace(tag, from, to)
		}
		off += size
	}
	g.dead -= src.dead()
	t.dropPage(g, number)
}
