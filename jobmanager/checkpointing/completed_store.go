package checkpointing

import (
	"time"

	"github.com/weirflow/weir"
)

// CompletedCheckpoint is what is remembered of a completed snapshot. Its content
// is in the file named by Metadata.
type CompletedCheckpoint struct {
	ID        weir.CheckpointID
	Kind      weir.SnapshotKind
	Metadata  string // blob name of its _metadata, or the path it was started from
	Bytes     int64
	Completed time.Time
	// Owned says that the snapshot is ours: a link of this job's chain, deleted when
	// it is subsumed. A savepoint, and what the job was started from without
	// claiming it, is not.
	Owned bool
}
