package heap

import (
	"unsafe"

	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/statebackend"
)

var _ statebackend.Plain = (*PageTable)(nil)

// GetPlain is Get of an entry without a namespace.
func (t *PageTable) GetPlain(hash uint64, key []byte, hint statebackend.Hint) (value []byte, ok bool) {
	if r, e := t.hinted(hash, key, hint); r != nil {
		return t.fixedValue(e), true
	}
	return t.get(&statebackend.Ref{Hash: hash, Key: key})
}

// SlotPlain is Slot of an entry without a namespace.
func (t *PageTable) SlotPlain(hash uint64, key []byte, hint statebackend.Hint) (value []byte, created bool) {
	r, e := t.hinted(hash, key, hint)
	if r == nil {
		return t.slot(&statebackend.Ref{Hash: hash, Key: key})
	}
	if r.birth < t.led.fence.Load() {
		e = t.copyPage(t.group(hash), hint.Slot>>pageUnitBits).entry(hint.Slot)
	}
	return t.fixedValue(e), false
}

// fixedValue is the value of an entry in a table of fixed-size ones.
func (t *PageTable) fixedValue(entry unsafe.Pointer) []byte {
	return (*[statebackend.MaxFixedSize]byte)(unsafe.Add(entry, entryHeader))[:t.lay.fixed:t.lay.fixed]
}

// hinted returns the entry that a prefetch found in a table of fixed-size values, and
// its page; or nil if that is not the key's: the hint is out of date, or the key is new or
// not the first of its tag. That is rare, and find's to sort out.
//
// The entry's header holds the key's length and no namespace's, so that no more of the
// page is read than is the entry's.
func (t *PageTable) hinted(hash uint64, key []byte, hint statebackend.Hint) (r *pageRef, entry unsafe.Pointer) {
	if hint.Version != t.version || hint.Slot == 0 {
		return nil, nil
	}
	g, n := t.group(hash), len(key)
	if assert.Enabled {
		t.checkHint(g, uint32(hash), hint.Slot)
	}
	r = &g.dir[hint.Slot>>pageUnitBits]
	entry = r.p.entry(hint.Slot)
	if *(*uint64)(entry) != hash<<32|uint64(n) || n > statebackend.MaxKeyBytes {
		return nil, nil
	}
	a, b := unsafe.Add(entry, t.lay.keyOff), unsafe.Pointer(unsafe.SliceData(key))
	if n < 8 || n > 64 {
		if string(unsafe.Slice((*byte)(a), n)) != string(key) {
			return nil, nil
		}
	} else if !same(a, b, n-8) {
		return nil, nil
	}
	return r, entry
}

// checkHint checks that a hint of this version is the first entry of its tag.
func (t *PageTable) checkHint(g *group, tag, at uint32) {
	assert.That(g.chained(tag) == uint64(tag)<<32|uint64(at), "heap: state %s: hint of another entry", t.name)
}

// same compares last+8 bytes, which is cheaper than a call for short keys, which most
// are.
func same(a, b unsafe.Pointer, last int) bool {
	differ := word(a, last) ^ word(b, last)
	for i := 0; i < last; i += 8 {
		differ |= word(a, i) ^ word(b, i)
	}
	return differ == 0
}

func word(p unsafe.Pointer, off int) uint64 { return *(*uint64)(unsafe.Add(p, off)) }
