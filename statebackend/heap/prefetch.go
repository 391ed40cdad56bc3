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

func (t *PageTable) prefetch(hashes []uint64, hints []statebackend.Hint) {
	var slots [prefetchBatch]uint64
	var groups [prefetchBatch]*group
	for i, h := range hashes {
		g := t.group(h)
		ix := g.index(uint32(h))
		groups[i&(prefetchBatch-1)] = g
		slots[i&(prefetchBatch-1)] = ix.slots[uint32(h)&ix.mask]
	}
	// The slot at home is mostly the key's; else it is near, in the same cache line.
	hints = hints[:len(hashes)]
	for i, h := range hashes {
		tag, s := uint32(h), slots[i&(prefetchBatch-1)]
		ix := groups[i&(prefetchBatch-1)].index(tag)
		at := tag & ix.mask
		for s != 0 && uint32(s>>32) != tag {
			at = (at + 1) & ix.mask
			s = ix.slots[at]
		}
		slots[i&(prefetchBatch-1)] = s
		hints[i] = statebackend.Hint{Version: t.version, Slot: at}
	}
	// An entry may lie across two cache lines; its key's first bytes show.
	far := t.lay.keyOff + unit - 1
	sum := t.sink
	for i := range hashes {
		s := uint32(slots[i&(prefetchBatch-1)])
		if s == 0 {
			continue
		}
		p, off := groups[i&(prefetchBatch-1)].dir[s>>pageUnitBits].p, int(s&pageUnitMask)*unit
		sum += uint64(p.b[off]) + uint64(p.b[min(off+far, pageSize-1)])
	}
	t.sink = sum
}
