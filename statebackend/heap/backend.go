package heap

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/statebackend"
)

// refill is the number of pages that a backend takes from the pool at once.
const refill = 32

// Backend holds the tables of one operator's subtask. All methods are for the
// task's goroutine.
type Backend struct {
	opts   statebackend.Options
	led    ledger
	epoch  uint32       // number of the last snapshot; the birth of new pages
	tables []*PageTable // in the order in which they were restored or registered
	spare  []*page      // empty pages at hand
	closed bool

	// restored holds the schemas found by Restore, by state.
	restored map[string]weir.StateSchema
}

var _ statebackend.Backend = (*Backend)(nil)

func newBackend(pool *PagePool, opts statebackend.Options) *Backend {
	b := &Backend{opts: opts, restored: make(map[string]weir.StateSchema)}
	b.led.pool = pool
	return b
}

// Table registers the state or finds it.
func (b *Backend) Table(d statebackend.Descriptor) (statebackend.Table, error) {
	if d.Name == "" || len(d.Name) > maxNameBytes {
		return nil, fmt.Errorf("heap backend: state name of %d bytes, want 1 to %d", len(d.Name), maxNameBytes)
	}
	if d.FixedSize < 0 || d.FixedSize > statebackend.MaxFixedSize {
		return nil, fmt.Errorf("heap backend: state %s: fixed size %d is not in 0 to %d", d.Name, d.FixedSize, statebackend.MaxFixedSize)
	}
	if len(d.Schema.Key) > maxSchemaBytes || len(d.Schema.Value) > maxSchemaBytes {
		return nil, fmt.Errorf("heap backend: state %s: schema is longer than %d bytes", d.Name, maxSchemaBytes)
	}
	d.Schema.State = d.Name
	t := b.find(d.Name)
	if t == nil {
		t = newPageTable(b, d.Name, d.FixedSize, d.Schema)
		t.registered = true
		b.tables = append(b.tables, t)
		return t, nil
	}
	if t.lay.fixed != d.FixedSize || t.registered && t.schema != d.Schema {
		return nil, fmt.Errorf("heap backend: %w: asked for %s, have %s", statebackend.ErrDescriptor,
			describe(d.Name, d.FixedSize, d.Schema), describe(t.name, t.lay.fixed, t.schema))
	}
	t.registered, t.schema = true, d.Schema
	return t, nil
}

func describe(name string, fixedSize int, s weir.StateSchema) string {
	return fmt.Sprintf("state %q with fixed size %d, key %q and value %q", name, fixedSize, s.Key, s.Value)
}

func (b *Backend) find(name string) *PageTable {
	for _, t := range b.tables {
		if t.name == name {
			return t
		}
	}
	return nil
}

// RestoredSchema returns the schema under which a state was written.
func (b *Backend) RestoredSchema(state string) (weir.StateSchema, bool) {
	s, ok := b.restored[state]
	return s, ok
}

// Snapshot captures all tables: for each key group that has entries, the header
// of its directory of pages.
func (b *Backend) Snapshot() (statebackend.Snapshot, error) {
	if b.closed {
		return nil, errClosed
	}
	b.epoch++
	s := &Snapshot{led: &b.led, opts: b.opts, epoch: b.epoch, tables: make([]capturedTable, 0, len(b.tables))}
	for _, t := range b.tables {
		s.tables = append(s.tables, captureTable(t))
	}
	b.led.open(s)
	return s, nil
}

// Stats sums the tables' sizes.
func (b *Backend) Stats() statebackend.Stats {
	st := statebackend.Stats{Tables: len(b.tables)}
	for _, t := range b.tables {
		st.Entries += t.entries
		for i := range t.groups {
			g := &t.groups[i]
			st.Bytes += int64(g.pages)*pageSize + int64(g.slots)*8
			st.DeadBytes += int64(g.dead)
		}
	}
	return st
}

// Close gives the pages back that no snapshot holds.
func (b *Backend) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	if assert.Enabled {
		b.check()
	}
	for _, t := range b.tables {
		for i := range t.groups {
			for _, r := range t.groups[i].dir {
				if r.p != nil {
					t.discard(r)
				}
			}
			t.groups[i].reset()
		}
		t.entries = 0
		t.moved()
	}
	b.led.pool.give(b.spare)
	b.spare = nil
	return nil
}

func (b *Backend) takePage() *page {
	if len(b.spare) == 0 {
		b.spare = b.led.pool.take(b.spare, refill)
	}
	n := len(b.spare) - 1
	p := b.spare[n]
	b.spare = b.spare[:n]
	return p
}

func (b *Backend) givePage(p *page) {
	p.reset()
	b.spare = append(b.spare, p)
	if len(b.spare) > 2*refill {
		b.led.pool.give(b.spare[refill:])
		b.spare = b.spare[:refill]
	}
}

// check counts everything again. It is for invariant builds.
func (b *Backend) check() {
	for _, t := range b.tables {
		entries := 0
		for i := range t.groups {
			t.groups[i].check(t)
			entries += t.groups[i].entries
		}
		assert.That(entries == t.entries, "heap: state %s counts %d entries, has %d", t.name, t.entries, entries)
	}
}
