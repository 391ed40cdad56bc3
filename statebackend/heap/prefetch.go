package heap

import "github.com/weirflow/weir/statebackend"

const prefetchBatch = 64

// Prefetch loads the slots of the hashes, then the entries they name. The loads of
// each stage do not depend on one another, so their cache misses overlap.
func (t *PageTable) Prefetch(hashes []uint64, hints []statebackend.Hint) {
	for len(hashes) > prefetchBatch {
		t.prefetch(hashes[:prefetchBatch], hints[:prefetchBatch])
		hashes, hints = hashes[prefetchBatch:], hints[prefetchBatch:]
	}
	t.prefetch(hashes, hints)
}

// prefetch works in stages: key groups and slots at home; the slots; the entries that
// they name; the entries. Stages that miss the cache do nothing but load: the less there
// is between two loads, the more of them a processor has under way. The arrays are not
// handed to functions, which would store into them as into the heap.
func (t *PageTable) prefetch(hashes []uint64, hints []statebackend.Hint) {
	var groups [prefetchBatch]*group
	var slots [prefetchBatch]*uint64
	var entries [prefetchBatch]*byte
	var ends [prefetchBatch]*byte
	for i, h := range hashes {
		g := t.group(h)
		ix := g.index(uint32(h))
		groups[i&(prefetchBatch-1)] = g
		slots[i&(prefetchBatch-1)] = &ix.slots[uint32(h)&ix.mask]
	}
	sum := t.sink
	for _, s := range slots[:len(hashes)] {
		sum += *s
	}
	// An entry may lie across two cache lines: its first byte shows, and one of its key.
	far, n := t.lay.keyOff+2*unit, 0
	hints = hints[:len(hashes)]
	for i, h := range hashes {
		g, s := groups[i&(prefetchBatch-1)], *slots[i&(prefetchBatch-1)]
		if s != 0 && uint32(s>>32) != uint32(h) {
			s = g.chained(uint32(h)) // mostly the slot at home is the key's
		}
		hints[i] = statebackend.Hint{}
		if s == 0 {
			continue
		}
		if t.lay.fixed > 0 {
			hints[i] = statebackend.Hint{Version: t.version, Slot: uint32(s)}
		}
		p, off := g.dir[uint32(s)>>pageUnitBits].p, int(s&pageUnitMask)*unit
		entries[n&(prefetchBatch-1)] = p.at(off)
		ends[n&(prefetchBatch-1)] = p.at(min(off+far, pageSize-1))
		n++
	}
	for i, e := range entries[:n] {
		sum += uint64(*e) + uint64(*ends[i])
	}
	t.sink = sum
}

// chained returns the first slot of the tag's chain that has the tag, or 0.
func (g *group) chained(tag uint32) uint64 {
	ix := g.index(tag)
	i := tag & ix.mask
	for ix.slots[i] != 0 && uint32(ix.slots[i]>>32) != tag {
		i = (i + 1) & ix.mask
	}
	return ix.slots[i]
}
