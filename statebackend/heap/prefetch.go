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

// prefetch works in stages. Those that miss the cache do nothing but load: the less
// there is between two loads, the more of them a processor has under way.
func (t *PageTable) prefetch(hashes []uint64, hints []statebackend.Hint) {
	var groups [prefetchBatch]*group
	var slots [prefetchBatch]*uint64
	var entries [prefetchBatch]*byte
	var ends [prefetchBatch]*byte
	n := t.homes(hashes, &groups, &slots)
	sum := t.sink
	for _, s := range slots[:n] {
		sum += *s
	}
	n = t.entriesOf(hashes, hints, &groups, &entries, &ends)
	for i, e := range entries[:n] {
		sum += uint64(*e) + uint64(*ends[i])
	}
	t.sink = sum
}

// homes finds each hash's key group and the slot where its key is, if no other is.
func (t *PageTable) homes(hashes []uint64, groups *[prefetchBatch]*group, slots *[prefetchBatch]*uint64) int {
	for i, h := range hashes {
		g := t.group(h)
		ix := g.index(uint32(h))
		groups[i&(prefetchBatch-1)] = g
		slots[i&(prefetchBatch-1)] = &ix.slots[uint32(h)&ix.mask]
	}
	return len(hashes)
}

// entriesOf makes the hints, now that the slots are loaded, and finds the entries: the
// first byte of each and one of its key. The slot at home is mostly the key's; else it
// is near, in the same cache line.
func (t *PageTable) entriesOf(hashes []uint64, hints []statebackend.Hint, groups *[prefetchBatch]*group, entries, ends *[prefetchBatch]*byte) int {
	far, n := t.lay.keyOff+2*unit, 0
	hints = hints[:len(hashes)]
	for i, h := range hashes {
		g, tag := groups[i&(prefetchBatch-1)], uint32(h)
		ix := g.index(tag)
		at := tag & ix.mask
		s := ix.slots[at]
		for s != 0 && uint32(s>>32) != tag {
			at = (at + 1) & ix.mask
			s = ix.slots[at&ix.mask]
		}
		hints[i] = statebackend.Hint{Version: t.version, Slot: at}
		if s == 0 {
			continue
		}
		p, off := g.dir[uint32(s)>>pageUnitBits].p, int(s&pageUnitMask)*unit
		entries[n&(prefetchBatch-1)] = &p.b[off]
		ends[n&(prefetchBatch-1)] = &p.b[min(off+far, pageSize-1)]
		n++
	}
	return n
}
