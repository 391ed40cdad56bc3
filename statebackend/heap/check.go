package heap

import "github.com/weirflow/weir/internal/assert"

// check counts a key group's entries, tombstones, pages and slots and compares
// with what the group believes. It is for invariant builds and tests.
func (g *group) check(t *PageTable) {
	live, dead, pages := 0, 0, 0
	for number, r := range g.dir {
		if r.p == nil {
			continue
		}
		pages += int(r.units)
		pageDead := 0
		for off, end := pageHeader, r.p.used(); off < end; {
			size := t.lay.sizeAt(r.p, off)
			h, _, namespace, _ := t.lay.parts(r.p.span(off, size))
			if h.dead() {
				pageDead += size
			} else {
				live++
				at := uint32(number)<<pageUnitBits | uint32(off/unit)
				tag := slotTag(h.tag(), namespace)
				g.index(tag).replace(tag, at, at) // panics if it is not there
			}
			off += size
		}
		assert.That(pageDead == r.p.dead(), "heap: page counts %d dead bytes, has %d", r.p.dead(), pageDead)
		assert.That(uint32(number) == g.tail || pageDead <= sparse, "heap: page has %d dead bytes", pageDead)
		dead += pageDead
	}
	assert.That(live == g.entries, "heap: key group counts %d entries, has %d", g.entries, live)
	assert.That(dead == g.dead, "heap: key group counts %d dead bytes, has %d", g.dead, dead)
	assert.That(pages == g.pages, "heap: key group counts %d pages, has %d", g.pages, pages)
	g.checkIndices()
}

func (g *group) checkIndices() {
	var last *index
	n, slots := 0, 0
	indices := g.shards
	if !g.first.split {
		indices = []*index{&g.first}
	}
	for _, ix := range indices {
		if ix == last || ix.limit == 0 {
			continue
		}
		last = ix
		used := uint32(0)
		for _, s := range ix.slots {
			if s != 0 {
				used++
			}
		}
		assert.That(used == ix.n, "heap: index counts %d slots, has %d", ix.n, used)
		n += int(used)
		slots += len(ix.slots)
	}
	assert.That(n == g.entries, "heap: indices name %d of %d entries", n, g.entries)
	assert.That(slots == g.slots, "heap: key group counts %d slots, has %d", g.slots, slots)
}
