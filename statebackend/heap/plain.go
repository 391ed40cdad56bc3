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
		return t.fixedAt(g, at), true
	}
	return t.get(&statebackend.Ref{Hash: hash, Key: key})
}

// SlotPlain is Slot of an entry without a namespace.
func (t *PageTable) SlotPlain(hash uint64, key []byte, hint statebackend.Hint) (value []byte, created bool) {
	if g, at := t.hinted(hash, key, hint); at != 0 {
		return t.slotAt(g, at), false
	}
	return t.slot(&statebackend.Ref{Hash: hash, Key: key})
}

// hinted returns the entry that a prefetch found in a table of fixed-size values, or
// the reference 0 if it is not the key's: the hint is out of date, or the key is new or
// not the first of its tag. That is rare, and find's to sort out.
func (t *PageTable) hinted(hash uint64, key []byte, hint statebackend.Hint) (g *group, at uint32) {
	if at = hint.Slot; hint.Version != t.version || at == 0 || len(key) > statebackend.MaxKeyBytes {
		return nil, 0
	}
	g = t.group(hash)
	if assert.Enabled {
		t.checkHint(g, uint32(hash), at)
	}
	p, off := g.dir[at>>pageUnitBits].p, int(at&pageUnitMask)*unit
	entry := p.fixedSpan(off, t.lay.keyOff+len(key))
	if header(binary.LittleEndian.Uint64(entry)) != makeHeader(uint32(hash), key, nil) || !same(entry[t.lay.keyOff:], key) {
		return nil, 0
	}
	return g, at
}

// checkHint checks that a hint of this version is the first entry of its tag.
func (t *PageTable) checkHint(g *group, tag, at uint32) {
	assert.That(g.chained(tag) == uint64(tag)<<32|uint64(at), "heap: state %s: hint of another entry", t.name)
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
