package heap

import (
	"context"
	"fmt"
	"io"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/statebackend"
)

// Snapshot is a captured backend: the directories of pages as they were. It is
// for one goroutine at a time, which is not the task's.
type Snapshot struct {
	led      *ledger
	opts     statebackend.Options
	epoch    uint32
	tables   []capturedTable
	retired  []pageRef // guarded by led.mu: pages that only snapshots still need
	released bool
}

var _ statebackend.Snapshot = (*Snapshot)(nil)

// capturedTable is what a snapshot keeps of a table.
type capturedTable struct {
	name   string
	lay    layout
	schema weir.StateSchema
	groups []capturedGroup // those with entries
}

type capturedGroup struct {
	group   weir.KeyGroup
	entries int
	pages   int
	dir     []pageRef
}

func captureTable(t *PageTable) capturedTable {
	c := capturedTable{name: t.name, lay: t.lay, schema: t.schema}
	c.groups = make([]capturedGroup, 0, min(len(t.groups), t.entries))
	for i := range t.groups {
		g := &t.groups[i]
		if g.entries > 0 {
			c.groups = append(c.groups, capturedGroup{
				group: weir.KeyGroup(t.first + uint32(i)), entries: g.entries, pages: g.pages, dir: g.dir,
			})
		}
	}
	return c
}

// Schemas are those of the captured tables.
func (s *Snapshot) Schemas() []weir.StateSchema {
	schemas := make([]weir.StateSchema, len(s.tables))
	for i := range s.tables {
		schemas[i] = s.tables[i].schema
	}
	return schemas
}

// Write writes the heap snapshot stream (docs/formats.md).
func (s *Snapshot) Write(ctx context.Context, w io.Writer) (n int64, err error) {
	if s.released {
		return 0, errReleased
	}
	out, err := newStreamWriter(ctx, w, s.size())
	if err != nil {
		return 0, fmt.Errorf("write heap snapshot: %w", err)
	}
	s.write(out)
	if err := out.finish(); err != nil {
		return out.written, fmt.Errorf("write heap snapshot: %w", err)
	}
	return out.written, nil
}

// size is an upper bound of the stream's payload, but for the descriptors.
func (s *Snapshot) size() int {
	n := pageSize
	for i := range s.tables {
		for j := range s.tables[i].groups {
			n += s.tables[i].groups[j].pages*(pageSize+4) + sectionBytes
		}
	}
	return n
}

func (s *Snapshot) write(out *streamWriter) {
	out.u32(uint32(s.opts.MaxParallelism))
	out.u32(uint32(s.opts.KeyGroups.First))
	out.u32(uint32(s.opts.KeyGroups.Last))
	out.u32(uint32(len(s.tables)))
	for i := range s.tables {
		out.descriptor(&s.tables[i])
	}
	for i := range s.tables {
		t := &s.tables[i]
		for j := range t.groups {
			g := &t.groups[j]
			out.section(i, g)
			for _, r := range g.dir {
				if r.p != nil {
					out.page(t.lay, r.p)
				}
			}
			out.u32(0)
		}
	}
	out.u32(0)
}

// Release gives the captured pages back.
func (s *Snapshot) Release() {
	assert.That(!s.released, "heap: snapshot %d is released twice", s.epoch)
	s.released = true
	s.tables = nil
	s.led.close(s)
}
