// Package heap keeps keyed state in memory without pointers: paged tables that
// are copied on write while a snapshot is outstanding.
//
// It owns [Backend], [PageTable], [Snapshot], the format of its snapshot stream
// and [PagePool]. It must not know files, tasks or the types of values: keys,
// namespaces and values are bytes, placed by a layout.
//
// A process makes one [PagePool] and a [Factory] of it; everything else is the
// contract of package statebackend.
//
// # How it is built
//
// A table has a group for each key group. A group has a directory of pages of
// 4 KiB, which hold the entries, and one or more indices, which find them: open
// addressing, 8 bytes a slot, half tag and half reference to page and offset. The
// collector sees one pointer a page. Values of fixed size are changed in place;
// others while they fit their room, and else the entry moves to the end and leaves
// a tombstone. A page that is more than half tombstones has its entries moved
// together. An index of 64 k entries is split in two by the next high bit of its
// tags, so one rehash is short. Entries larger than a page have pages to
// themselves.
//
// A snapshot is a number, the epoch, and the headers of the directories. What was
// born in an older epoch than an outstanding snapshot is captured and is copied
// before it is written; a directory likewise. ledger.go says who gives the
// replaced page back, and when.
//
// # Invariants
//
//  1. A page or directory whose birth is smaller than the newest outstanding
//     snapshot is never written.
//  2. Every page taken from the pool is in exactly one place: a directory, a
//     backend's spare pages, or the list of one outstanding snapshot. After Close
//     and the last Release none is left.
//  3. The references in an index name live entries of its key group, each exactly
//     once; a reference of 0 is an empty slot.
//  4. A slot of an index moves only when the table's version does.
//  5. All pages but the one that takes new entries are at most half tombstones.
//  6. What a snapshot writes does not depend on what recycled pages held before.
//  7. Nothing read from a stream is used before its chunk's checksum was verified,
//     and memory is taken as bytes arrive.
//
// Builds with the tag invariants overwrite recycled pages, look for whoever wrote
// to one, and count everything again when a backend is closed.
//
// There are no goroutines. The task's goroutine owns the backend and its tables,
// another one each snapshot; they share the ledger (one mutex, taken for a page
// copied, a snapshot opened or released, and one atomic, loaded for each write)
// and the pool (one mutex, taken for some pages at a time). The ledger's mutex is
// never held when the pool's is taken.
//
// Read page.go, entry.go and group.go first, then page_table.go and ledger.go.
package heap
