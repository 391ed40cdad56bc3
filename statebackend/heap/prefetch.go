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
	var first [prefetchBatch]uint64 // the slot at home
	for i, h := range hashes {
		ix := t.group(h).index(uint32(h))
		first[i&(prefetchBatch-1)] = ix.slots[uint32(h)&ix.mask]
	}
	sum := t.sink
	for i, h := range hashes {
		g, tag := t.group(h), uint32(h)
		ix := g.index(tag)
		at := tag & ix.mask
		s := first[i&(prefetchBatch-1)]
		for s != 0 && uint32(s>>32) != tag {
			at = (at + 1) & ix.mask
			s = ix.slots[at]
		}
		hints[i] = statebackend.Hint{Version: t.version, Slot: at}
		if s != 0 {
			p, off := g.dir[uint32(s)>>pageUnitBits].p, int(s&pageUnitMask)*unit
			sum += uint64(p.b[off])
		}
	}
	t.sink = sum
}
