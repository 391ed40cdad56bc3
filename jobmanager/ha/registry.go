package ha

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// Revision is a point in the registry's history. It grows with every applied write.
type Revision int64

// KV is a key with its value and revisions.
type KV struct {
	Key            string
	Value          []byte
	CreateRevision Revision // of the write that created the key
	ModRevision    Revision // of the last write to it
}

// Limits of what the registry holds. Larger things are blobs.
const (
	MaxKeyLength   = 1024
	MaxValueLength = 256 << 10
	MaxTxnOps      = 64
	MaxTxnLength   = 1 << 20 // of all keys and values of a transaction together
)

// DefaultLeaseTTL is how long a leader that is not heard of is waited for.
const DefaultLeaseTTL = 6 * time.Second

// Registry is a revisioned key-value store with one election. Keys are relative
// to the cluster's own part of it. Reads are linearizable.
type Registry interface {
	// Campaign waits until the candidate leads, or ctx ends.
	Campaign(ctx context.Context, c Candidate) (Leadership, error)
	// Leader says who leads now, or [ErrNoLeader].
	Leader(ctx context.Context) (Leader, error)
	// Get reads one key, or returns [ErrNotFound].
	Get(ctx context.Context, key string) (KV, error)
	// List reads all keys with the prefix, in order of keys, all as of one revision,
	// which it returns. The prefix must not be empty.
	List(ctx context.Context, prefix string) ([]KV, Revision, error)
	// Txn applies all ops, or none: if guard's leadership is over it returns
	// [ErrNotLeader]; if a key has not the revision its op expects, a
	// [*ConflictError]; if there was no answer, an [ErrDoubtful]. The revision
	// returned is that of the keys it wrote.
	Txn(ctx context.Context, guard weir.LeaderEpoch, ops ...Op) (Revision, error)
	// Close gives up leadership, without waiting for an answer longer than a second,
	// and ends the connection.
	Close() error
}

// Candidate is who wants to lead.
type Candidate struct {
	ID      string // of the process, for people and for finding its own former lease
	Address string // where clients and TaskManagers reach it
}

// Leader is who leads.
type Leader struct {
	Candidate
	Epoch weir.LeaderEpoch
}

// Leadership is a won election. It is safe for concurrent use.
type Leadership interface {
	// Epoch is the create revision of the election key.
	Epoch() weir.LeaderEpoch
	// Lost is closed when the leadership is over or cannot be vouched for any more.
	// That is before another one can begin, unless this process was paused.
	Lost() <-chan struct{}
	// Err says why it was lost; nil before.
	Err() error
	// Resign ends it at once, so that the next leader need not wait. It returns
	// after Lost is closed, and is idempotent.
	Resign(ctx context.Context) error
}
