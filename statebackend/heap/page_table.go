package heap

import (
	"encoding/binary"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/statebackend"
)

// PageTable is one keyed state: for each key group, pages of entries and their
// indices. All methods are for the task's goroutine.
type PageTable struct {
	name       string
	lay        layout
	own        *Backend
	led        *ledger // own.led
	schema     weir.StateSchema
	registered bool // Table was called; otherwise it was only restored

	groups  []group
	first   uint32 // key group of groups[0]
	max     uint64 // number of key groups of the operator
	version uint32 // of all entries: moves when one's place may have; never 0
	entries int
	sink    uint64 // what Prefetch loaded, so that the loads are made
}

var _ statebackend.Table = (*PageTable)(nil)

func newPageTable(b *Backend, name string, fixedSize int, schema weir.StateSchema) *PageTable {
	t := &PageTable{
		name:    name,
		lay:     layoutOf(fixedSize),
		own:     b,
		led:     &b.led,
		schema:  schema,
		groups:  make([]group, b.opts.KeyGroups.Len()),
		first:   uint32(b.opts.KeyGroups.First),
		max:     uint64(b.opts.MaxParallelism),
		version: 1,
	}
	for i := range t.groups {
		t.groups[i].reset()
	}
	return t
}

// place is where an entry is, or where its index has room for it.
type place struct {
	g    *group
	ix   *index
	slot uint32
	tag  uint32
	at   uint32 // the page reference, or 0: the entry is not there
}

// find looks for an entry.
func (t *PageTable) find(ref *statebackend.Ref) place {
	if len(ref.Key) > statebackend.MaxKeyBytes || len(ref.Namespace) > statebackend.MaxNamespaceBytes {
		t.oversize(ref)
	}
	g := t.group(ref.Hash)
	tag := slotTag(uint32(ref.Hash), ref.Namespace)
	ix := g.index(tag)
	i := tag & ix.mask
	want := makeHeader(uint32(ref.Hash), ref.Key, ref.Namespace)
	for ; ; i = (i + 1) & ix.mask {
		s := ix.slots[i]
		if s == 0 {
			return place{g, ix, i, tag, 0}
		}
		if uint32(s>>32) != tag {
			continue
		}
		p, off := g.dir[uint32(s)>>pageUnitBits].p, int(s&pageUnitMask)*unit
		if headerAt(p, off) != want {
			continue
		}
		key := off + t.lay.keyOff
		if string(p.span(key, len(ref.Key))) != string(ref.Key) {
			continue
		}
		if len(ref.Namespace) == 0 || string(p.span(key+len(ref.Key), len(ref.Namespace))) == string(ref.Namespace) {
			return place{g, ix, i, tag, uint32(s)}
		}
	}
}

// Get returns the value.
func (t *PageTable) Get(ref statebackend.Ref, hint statebackend.Hint) (value []byte, ok bool) {
	if len(ref.Namespace) == 0 {
		if g, at := t.hinted(ref.Hash, ref.Key, hint); at != 0 {
			return t.fixedAt(g, at), true
		}
	}
	return t.get(&ref)
}

func (t *PageTable) get(ref *statebackend.Ref) (value []byte, ok bool) {
	e := t.find(ref)
	switch {
	case e.at == 0:
		return nil, false
	case t.lay.fixed > 0:
		return t.fixedAt(e.g, e.at), true
	}
	p, off := e.g.dir[e.at>>pageUnitBits].p, int(e.at&pageUnitMask)*unit
	n := int(binary.LittleEndian.Uint32(p.b[off+8:]))
	return p.span(off+variableHeader+len(ref.Key)+len(ref.Namespace), n), true
}

// fixedAt is a fixed-size value for reading.
func (t *PageTable) fixedAt(g *group, at uint32) []byte {
	return g.dir[at>>pageUnitBits].p.fixedSpan(int(at&pageUnitMask)*unit+entryHeader, t.lay.fixed)
}

// Slot returns the value of a fixed-size table in place.
func (t *PageTable) Slot(ref statebackend.Ref, hint statebackend.Hint) (value []byte, created bool) {
	if len(ref.Namespace) == 0 {
		if g, at := t.hinted(ref.Hash, ref.Key, hint); at != 0 {
			return t.slotAt(g, at), false
		}
	}
	return t.slot(&ref)
}

func (t *PageTable) slot(ref *statebackend.Ref) (value []byte, created bool) {
	if t.lay.fixed == 0 {
		t.misuse("Slot")
	}
	e := t.find(ref)
	if e.at != 0 {
		return t.slotAt(e.g, e.at), false
	}
	value = t.insert(e, ref, 0)[entryHeader : entryHeader+t.lay.fixed : entryHeader+t.lay.fixed]
	clear(value)
	return value, true
}

// slotAt is a fixed-size value for writing.
func (t *PageTable) slotAt(g *group, at uint32) []byte {
	r := &g.dir[at>>pageUnitBits]
	p := r.p
	if r.birth < t.led.fence.Load() {
		p = t.copyPage(g, at>>pageUnitBits)
	}
	return p.fixedSpan(int(at&pageUnitMask)*unit+entryHeader, t.lay.fixed)
}

// Put sets the value.
func (t *PageTable) Put(ref statebackend.Ref, hint statebackend.Hint, value []byte) {
	if t.lay.fixed > 0 {
		assert.That(len(value) == t.lay.fixed, "heap: state %s takes values of %d bytes, got %d", t.name, t.lay.fixed, len(value))
		slot, _ := t.Slot(ref, hint)
		copy(slot, value)
		return
	}
	assert.That(len(value) <= statebackend.MaxValueBytes, "heap: a value of state %s has %d bytes", t.name, len(value))
	e := t.find(&ref)
	switch {
	case e.at == 0:
		t.setValue(t.insert(e, &ref, len(value)), &ref, value)
	case !t.putInPlace(e.g, e.at, &ref, value):
		t.kill(e.g, e.at)
		// A value that has grown once will again: leave it a quarter.
		entry, at := t.newEntry(e.g, &ref, len(value)+len(value)/4)
		e.ix.slots[e.slot] = uint64(e.tag)<<32 | uint64(at)
		t.setValue(entry, &ref, value)
	}
}

// putInPlace overwrites a variable-size value if it fits its room. A large entry
// stays only if it is the table's own and remains a large one, since copying the
// old value would be in vain and shrinking would waste pages.
func (t *PageTable) putInPlace(g *group, at uint32, ref *statebackend.Ref, value []byte) bool {
	number, off := at>>pageUnitBits, int(at&pageUnitMask)*unit
	r := g.dir[number]
	room := int(binary.LittleEndian.Uint32(r.p.b[off+12:]))
	if len(value) > room {
		return false
	}
	if r.units > 1 && (2*len(value) < room || r.birth < t.led.fence.Load()) {
		return false
	}
	p := t.writable(g, number)
	t.setValue(p.span(off, t.lay.sizeAt(p, off)), ref, value)
	return true
}

func (t *PageTable) setValue(entry []byte, ref *statebackend.Ref, value []byte) {
	binary.LittleEndian.PutUint32(entry[8:], uint32(len(value)))
	copy(entry[variableHeader+len(ref.Key)+len(ref.Namespace):], value)
}

// Delete removes the entry.
func (t *PageTable) Delete(ref statebackend.Ref) bool {
	e := t.find(&ref)
	if e.at == 0 {
		return false
	}
	e.ix.remove(e.slot)
	t.moved()
	e.g.entries--
	t.entries--
	t.kill(e.g, e.at)
	return true
}

// Scan calls fn for every entry.
func (t *PageTable) Scan(fn func(group weir.KeyGroup, key, namespace, value []byte) bool) {
	for i := range t.groups {
		for _, r := range t.groups[i].dir {
			if r.p == nil {
				continue
			}
			for off, end := pageHeader, r.p.used(); off < end; {
				size := t.lay.sizeAt(r.p, off)
				h, key, namespace, value := t.lay.parts(r.p.span(off, size))
				if !h.dead() && !fn(weir.KeyGroup(t.first+uint32(i)), key, namespace, value) {
					return
				}
				off += size
			}
		}
	}
}

// Len is the number of live entries.
func (t *PageTable) Len() int { return t.entries }

// group is the key group of a hash, which must be one of the backend's.
func (t *PageTable) group(hash uint64) *group {
	if assert.Enabled {
		t.checkOwn(hash)
	}
	return &t.groups[uint32((hash>>32)*t.max>>32)-t.first]
}

func (t *PageTable) moved() {
	t.version++
	if t.version == 0 {
		t.version = 1
	}
}

// insert adds an entry that find did not find.
func (t *PageTable) insert(e place, ref *statebackend.Ref, room int) (entry []byte) {
	t.makeRoom(&e)
	entry, at := t.newEntry(e.g, ref, room)
	t.added(e, at)
	return entry
}

// makeRoom sees to it that the index takes one more entry at the place.
func (t *PageTable) makeRoom(e *place) {
	if e.ix.n >= e.ix.limit {
		e.ix = e.g.makeRoom(e.tag)
		e.slot = e.ix.free(e.tag)
		t.moved()
	}
}

func (t *PageTable) added(e place, at uint32) {
	e.ix.slots[e.slot] = uint64(e.tag)<<32 | uint64(at)
	e.ix.n++
	e.g.entries++
	t.entries++
}

// newEntry writes an entry but for its value. No index names it yet.
func (t *PageTable) newEntry(g *group, ref *statebackend.Ref, room int) (entry []byte, at uint32) {
	size := t.lay.size(len(ref.Key), len(ref.Namespace), room)
	at, p := t.alloc(g, size)
	entry = p.span(int(at&pageUnitMask)*unit, size)
	binary.LittleEndian.PutUint64(entry, uint64(makeHeader(uint32(ref.Hash), ref.Key, ref.Namespace)))
	copy(entry[t.lay.keyOff:], ref.Key)
	nsEnd := t.lay.keyOff + len(ref.Key) + copy(entry[t.lay.keyOff+len(ref.Key):], ref.Namespace)
	if t.lay.fixed == 0 {
		binary.LittleEndian.PutUint32(entry[12:], uint32(size-nsEnd)) // the padding is of use
	}
	clear(entry[nsEnd:]) // a snapshot must not write what was in a recycled page
	return entry, at
}

func (t *PageTable) takePages(units int) *page {
	if units > 1 {
		return t.led.pool.takeLarge(units)
	}
	return t.own.takePage()
}

// discard gives a page up that the directory no longer names.
func (t *PageTable) discard(r pageRef) {
	switch {
	case r.birth < t.led.fence.Load():
		t.led.retire(r)
	case r.units > 1:
		t.led.pool.giveLarge(r.p, int(r.units))
	default:
		t.own.givePage(r.p)
	}
}

func (t *PageTable) checkOwn(hash uint64) {
	g := uint32((hash >> 32) * t.max >> 32)
	assert.That(g-t.first < uint32(len(t.groups)), "heap: state %s: key group %d is not in %d key groups from %d", t.name, g, len(t.groups), t.first)
}

func (t *PageTable) oversize(ref *statebackend.Ref) {
	assert.That(false, "heap: state %s: key of %d or namespace of %d bytes is too long", t.name, len(ref.Key), len(ref.Namespace))
}

func (t *PageTable) misuse(method string) {
	assert.That(false, "heap: %s of state %s, whose values vary in size", method, t.name)
}
