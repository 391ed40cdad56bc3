package heap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

// maxRun bounds a run of entries: a page's room, or one large entry.
const maxRun = variableHeader + statebackend.MaxKeyBytes + statebackend.MaxNamespaceBytes + 2*statebackend.MaxValueBytes

// Restore reads the handles' entries whose key groups are this backend's.
func (b *Backend) Restore(ctx context.Context, handles []weir.KeyedStateHandle, open statebackend.OpenFunc) error {
	for i, h := range handles {
		if h.Range.Intersect(b.opts.KeyGroups).Len() == 0 {
			continue
		}
		if err := b.restoreHandle(ctx, h, open); err != nil {
			return fmt.Errorf("restore keyed state %d of %d (%s, key groups %v): %w", i+1, len(handles), where(h), h.Range, err)
		}
	}
	return nil
}

func where(h weir.KeyedStateHandle) string {
	if h.Handle.File == "" {
		return fmt.Sprintf("%d bytes inline", len(h.Handle.Inline))
	}
	return fmt.Sprintf("%s at %d", h.Handle.File, h.Handle.Offset)
}

func (b *Backend) restoreHandle(ctx context.Context, h weir.KeyedStateHandle, open statebackend.OpenFunc) (err error) {
	if h.Backend != Name {
		return fmt.Errorf("%w: written by backend %q, this is %q", statebackend.ErrUnsupported, h.Backend, Name)
	}
	src, err := open(ctx, h.Handle)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	in, err := newStreamReader(src)
	if err != nil {
		return err
	}
	return b.restoreStream(ctx, in, h.Range)
}

// restoreStream reads sections until their end. Of the handle's key groups those
// count that are this backend's; a handle may be narrower than what is in it.
func (b *Backend) restoreStream(ctx context.Context, in *streamReader, groups weir.KeyGroupRange) error {
	head, err := in.header()
	if err != nil {
		return err
	}
	if head.maxParallelism != b.opts.MaxParallelism {
		return fmt.Errorf("%w: %d, now %d", statebackend.ErrMaxParallelism, head.maxParallelism, b.opts.MaxParallelism)
	}
	var tables []*PageTable
	for range head.tables {
		t, err := b.restoreTable(in, tables)
		if err != nil {
			return err
		}
		tables = append(tables, t)
	}
	mine := groups.Intersect(b.opts.KeyGroups)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		table, err := in.u32()
		if err != nil {
			return err
		}
		if table == 0 {
			return in.end()
		}
		if int64(table) > int64(len(tables)) {
			return corrupt("section of table %d of %d", table, len(tables))
		}
		if err := tables[table-1].restoreSection(in, head.groups, mine); err != nil {
			return fmt.Errorf("state %s: %w", tables[table-1].name, err)
		}
	}
}

// restoreTable reads a descriptor and finds or makes its table.
func (b *Backend) restoreTable(in *streamReader, before []*PageTable) (*PageTable, error) {
	d, err := in.descriptor()
	if err != nil {
		return nil, err
	}
	name := d.schema.State
	for _, t := range before {
		if t.name == name {
			return nil, corrupt("state %q is there twice", name)
		}
	}
	t := b.find(name)
	if t == nil {
		t = newPageTable(b, name, d.lay.fixed, d.schema)
		b.tables = append(b.tables, t)
		b.restored[name] = d.schema
		return t, nil
	}
	if t.lay != d.lay || t.schema != d.schema {
		return nil, fmt.Errorf("%w: handles differ: %s and %s", statebackend.ErrDescriptor,
			describe(name, d.lay.fixed, d.schema), describe(t.name, t.lay.fixed, t.schema))
	}
	return t, nil
}

// restoreSection reads the entries of one key group, or skips them.
func (t *PageTable) restoreSection(in *streamReader, written, mine weir.KeyGroupRange) error {
	kg, err := in.u32()
	if err != nil {
		return err
	}
	entries, err := in.u64()
	if err != nil {
		return err
	}
	if kg >= weir.MaxMaxParallelism || !written.Contains(weir.KeyGroup(kg)) {
		return corrupt("key group %d is not in %v", kg, written)
	}
	var g *group
	if mine.Contains(weir.KeyGroup(kg)) {
		g = &t.groups[kg-t.first]
		if g.entries > 0 {
			return corrupt("key group %d is there twice", kg)
		}
	}
	high := (uint64(kg)<<32 + t.max - 1) / t.max // the first hash of the group, upper half
	var run []byte
	for {
		n, err := in.u32()
		if err != nil {
			return err
		}
		switch {
		case n == 0:
			if g != nil && uint64(g.entries) != entries {
				return corrupt("key group %d has %d entries, announced %d", kg, g.entries, entries)
			}
			return nil
		case int64(n) > maxRun:
			return corrupt("run of %d bytes", n)
		case g == nil:
			if err := in.skip(int(n)); err != nil {
				return err
			}
			continue
		}
		if run, err = in.read(run[:0], int(n)); err != nil {
			return err
		}
		if err := t.restoreRun(high, run); err != nil {
			return err
		}
	}
}

// restoreRun adds the entries of a run, which need not fit a page.
func (t *PageTable) restoreRun(high uint64, run []byte) error {
	for len(run) > 0 {
		size, err := t.lay.validate(run)
		if err != nil {
			return err
		}
		if !t.restoreEntry(high, run[:size]) {
			return corrupt("a key is there twice")
		}
		run = run[size:]
	}
	return nil
}

// validate checks the entry at the start of a run and returns its size.
func (l layout) validate(run []byte) (int, error) {
	if len(run) < max(entryHeader, l.keyOff) {
		return 0, corrupt("entry in %d bytes", len(run))
	}
	h := header(binary.LittleEndian.Uint64(run))
	if h.dead() {
		return 0, corrupt("tombstone")
	}
	room := 0
	if l.fixed == 0 {
		room = int(binary.LittleEndian.Uint32(run[12:]))
		if n := int(binary.LittleEndian.Uint32(run[8:])); n > room {
			return 0, corrupt("value of %d bytes in %d", n, room)
		}
	}
	size := l.size(h.key(), h.namespace(), room)
	if size > len(run) {
		return 0, corrupt("entry of %d bytes in %d", size, len(run))
	}
	return size, nil
}

// restoreEntry adds a valid entry to the key group of hashes that begin with high,
// and says whether it was not there. That the key belongs there is the writer's
// word: of its hash only the tag was written.
func (t *PageTable) restoreEntry(high uint64, entry []byte) bool {
	h, key, namespace, _ := t.lay.parts(entry)
	ref := statebackend.Ref{Hash: high<<32 | uint64(h.tag()), Key: key, Namespace: namespace}
	e := t.find(&ref)
	if e.at != 0 {
		return false
	}
	t.makeRoom(&e)
	at, p := t.alloc(e.g, len(entry))
	copy(p.span(int(at&pageUnitMask)*unit, len(entry)), entry)
	t.added(e, at)
	return true
}
