package heap

import (
	"encoding/binary"

	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/statebackend"
)

var _ statebackend.Plain = (*PageTable)(nil)

// GetPlain is Get of an entry without a namespace.
func (t *PageTable) GetPlain(hash uint64, key []byte, hint statebackend.Hint) (value []byte, ok bool) {
	if g, at := t.hinted(hash, key, hint); at != 0 {
		off := int(at&pageUnitMask)*unit + entryHeader
		return g.dir[at>>pageUnitBits].p.span(off, t.lay.fixed), true
	}
	return t.Get(statebackend.Ref{Hash: hash, Key: key}, hint)
}

// SlotPlain is Slot of an entry without a namespace.
func (t *PageTable) SlotPlain(hash uint64, key []byte, hint statebackend.Hint) (value []byte, created bool) {
	if g, at := t.hinted(hash, key, hint); at != 0 {
		r := &g.dir[at>>pageUnitBits]
		p := r.p
		if r.birth < t.led.fence.Load() {
			p = t.copyPage(g, at>>pageUnitBits)
		}
		return p.span(int(at&pageUnitMask)*unit+entryHeader, t.lay.fixed), false
	}
	return t.Slot(statebackend.Ref{Hash: hash, Key: key}, hint)
}

// hinted returns the entry that a prefetch found in a table of fixed-size values, or
// the reference 0 if the hint does not name the key's: it is out of date, or the key
// is new or not the first of its tag. That is rare, and find's to sort out.
func (t *PageTable) hinted(hash uint64, key []byte, hint statebackend.Hint) (g *group, at uint32) {
	if hint.Version != t.version || t.lay.fixed == 0 || len(key) > statebackend.MaxKeyBytes {
		return nil, 0
	}
	g = t.group(hash)
	tag := uint32(hash)
	ix := g.index(tag)
	if assert.Enabled {
		t.checkHint(ix, tag, hint)
	}
	s := ix.slots[hint.Slot&ix.mask]
	if s == 0 || uint32(s>>32) != tag {
		return nil, 0
	}
	p, off := g.dir[uint32(s)>>pageUnitBits].p, int(s&pageUnitMask)*unit
	if headerAt(p, off) != makeHeader(tag, key, nil) || !same(p.span(off+t.lay.keyOff, len(key)), key) {
		return nil, 0
	}
	return g, uint32(s)
}

// same says whether two keys of one length are equal. Short ones, which most are, are
// compared without a call.
func same(a, b []byte) bool {
	n := len(b)
	if n < 8 || n > 64 {
		return string(a) == string(b)
	}
	last := n - 8
	for i := 0; i < last; i += 8 {
		if binary.LittleEndian.Uint64(a[i:]) != binary.LittleEndian.Uint64(b[i:]) {
			return false
		}
	}
	return binary.LittleEndian.Uint64(a[last:]) == binary.LittleEndian.Uint64(b[last:])
}
