package statebackend

import (
	"context"
	"io"

	"github.com/weirflow/weir"
)

// Options say which part of the key space a backend holds.
type Options struct {
	MaxParallelism int                // number of key groups of the operator
	KeyGroups      weir.KeyGroupRange // those of this subtask
}

// Factory makes a backend for one operator's subtask.
type Factory interface {
	// Name is written into state handles, for example "heap".
	Name() string
	// New returns an empty backend.
	New(opts Options) (Backend, error)
}

// Descriptor describes one keyed state of an operator.
type Descriptor struct {
	// Name is unique within the operator.
	Name string
	// FixedSize is the number of bytes of every value if all values are
	// pointer-free and of one size (1 to 4096), and 0 if values vary in size.
	FixedSize int
	// Schema describes keys and values for later versions of the job.
	Schema weir.StateSchema
}

// Bounds of what a table takes. Callers check what users give them; a table
// panics beyond.
const (
	MaxFixedSize      = 4096      // bytes of a fixed-size value
	MaxKeyBytes       = 1<<15 - 1 // of an encoded key
	MaxNamespaceBytes = 1<<16 - 1
	MaxValueBytes     = 1 << 30
)

// Ref names an entry of a table.
type Ref struct {
	// Hash is codec's hash of the encoded key (DECISIONS 20): its high 32 bits
	// choose the key group, its low 32 bits are the tag.
	Hash uint64
	// Key is the encoded key. The table copies what it keeps.
	Key []byte
	// Namespace tells entries of one key apart: a window, a timer's time, an
	// element of a list. Empty for plain values.
	Namespace []byte
}

// Hint is where a table found, or would look for, an entry when it prefetched.
// It is only a hint: a table whose version moved probes again. The zero Hint is
// always valid.
type Hint struct {
	Version uint32 // of the table when the hint was made; 0 is never current
	Slot    uint32
}

// Backend holds the keyed state of one operator's subtask. All methods are for
// the task's goroutine.
type Backend interface {
	// Table registers the state or finds it, with what was restored of it. A second
	// call with an equal descriptor returns the same table; with another one of the
	// same name it is an error that names both. The restored schema, if any, is
	// available from Schema.
	Table(d Descriptor) (Table, error)
	// RestoredSchema returns the schema under which a state was written, if it was restored.
	RestoredSchema(state string) (weir.StateSchema, bool)
	// Restore reads the handles' entries whose key groups are this backend's. It is
	// called once, before Table. Corrupt bytes give an error that names the handle,
	// never a panic, and lengths are bounded before memory is taken.
	Restore(ctx context.Context, handles []weir.KeyedStateHandle, open OpenFunc) error
	// Snapshot is the synchronous part: it captures all tables as they are now, in
	// a time that depends on the number of key groups and not of entries.
	Snapshot() (Snapshot, error)
	// Stats are sizes for metrics and logs.
	Stats() Stats
	// Close gives memory back. Outstanding snapshots stay readable until released.
	Close() error
}

// OpenFunc opens the bytes of a handle for reading, checksum verified at EOF.
type OpenFunc func(ctx context.Context, h weir.StateHandle) (io.ReadCloser, error)

// Table is one keyed state. All methods are for the task's goroutine.
type Table interface {
	// Prefetch loads the slots of entries with these hashes (of keys without a
	// namespace) together, so that their cache misses overlap, and notes where they
	// are. hints has the length of hashes.
	Prefetch(hashes []uint64, hints []Hint)
	// Get returns the value. The slice is the table's: read it at once, do not write.
	Get(ref Ref, hint Hint) (value []byte, ok bool)
	// Put sets the value, copying it. For a fixed-size table len(value) must be that
	// size. Neither the value nor the ref may be a slice of the table's.
	Put(ref Ref, hint Hint, value []byte)
	// Slot returns the value of a fixed-size table for reading and writing in place,
	// creating it zeroed if it is absent. The slice is valid until the next call.
	Slot(ref Ref, hint Hint) (value []byte, created bool)
	// Delete removes the entry and says whether it was there.
	Delete(ref Ref) bool
	// Scan calls fn for every entry, key group by key group, until it returns false.
	// The table must not be changed meanwhile. Slices are the table's.
	Scan(fn func(group weir.KeyGroup, key, namespace, value []byte) bool)
	// Len is the number of live entries.
	Len() int
}

// Plain is what a table may offer beside [Table], for entries without a namespace:
// the same calls with arguments that fit in registers. Who uses a table for every
// record looks for it once. The values of a table that offers it are aligned to 8 bytes.
type Plain interface {
	// GetPlain is Table.Get.
	GetPlain(hash uint64, key []byte, hint Hint) (value []byte, ok bool)
	// SlotPlain is Table.Slot.
	SlotPlain(hash uint64, key []byte, hint Hint) (value []byte, created bool)
}

// Snapshot is the asynchronous part of a captured backend: immutable, for one
// goroutine at a time, not the task's.
type Snapshot interface {
	// Write writes the backend's own versioned, checksummed format, from which
	// Restore can read any range of key groups. It stops when ctx ends.
	Write(ctx context.Context, w io.Writer) (n int64, err error)
	// Schemas are those of the captured tables.
	Schemas() []weir.StateSchema
	// Release gives the captured pages back. Called exactly once.
	Release()
}

// Stats are sizes of a backend.
type Stats struct {
	Tables  int
	Entries int
	Bytes   int64 // memory taken, indices included

	// DeadBytes is the part of Bytes that deleted and outgrown entries still hold.
	DeadBytes int64
}
