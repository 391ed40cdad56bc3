package checkpointing

import (
	"slices"
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
	// Owned says that the snapshot is ours to delete when it is subsumed: a checkpoint
	// of this job, or what it was started from and took over (CLAIM). A savepoint, and
	// what the job was started from without claiming it, is not.
	Owned bool
	// Foreign says that it was not taken of this job, which was started from it: it has
	// no link in the chain, and its id says nothing to this job's tasks.
	Foreign bool
	// Shared are the files of the shared directory that it names, where it is known
	// from the chain (Restored).
	Shared []string
}

// CompletedCheckpointStore is the list of completed snapshots, and the choice of
// which to keep (behaviour §7). Only its coordinator calls it.
type CompletedCheckpointStore struct {
	retained int
	list     []CompletedCheckpoint // in order of completion
}

// NewCompletedCheckpointStore returns a store that keeps this many.
func NewCompletedCheckpointStore(retained int, list ...CompletedCheckpoint) *CompletedCheckpointStore {
	return &CompletedCheckpointStore{retained: retained, list: slices.Clone(list)}
}

// List is a copy, oldest first.
func (s *CompletedCheckpointStore) List() []CompletedCheckpoint { return slices.Clone(s.list) }

// Latest is the newest.
func (s *CompletedCheckpointStore) Latest() (CompletedCheckpoint, bool) {
	if len(s.list) == 0 {
		return CompletedCheckpoint{}, false
	}
	return s.list[len(s.list)-1], true
}

// latestOfJob is the newest id of this job's own, or NoCheckpoint: a checkpoint's, or
// that of the savepoint of a stop.
func (s *CompletedCheckpointStore) latestOfJob() weir.CheckpointID {
	for _, c := range slices.Backward(s.list) {
		if !c.Foreign {
			return c.ID
		}
	}
	return weir.NoCheckpoint
}

// lowest is the oldest snapshot that is kept, by id.
func (s *CompletedCheckpointStore) lowest() weir.CheckpointID {
	low := weir.NoCheckpoint
	for i, c := range s.list {
		if i == 0 || c.ID < low {
			low = c.ID
		}
	}
	return low
}

// holds says whether the store holds this checkpoint as this job's own.
func (s *CompletedCheckpointStore) holds(id weir.CheckpointID) bool {
	return slices.ContainsFunc(s.list, func(c CompletedCheckpoint) bool { return !c.Foreign && c.ID == id })
}

// Add appends a snapshot and returns those that are not kept any more, oldest first.
func (s *CompletedCheckpointStore) Add(c CompletedCheckpoint) (subsumed []CompletedCheckpoint) {
	s.list = append(s.list, c)
	excess := len(s.list) - s.retained
	if excess <= 0 {
		return nil
	}
	newest := len(s.list) - 1
	keep := newest // besides the newest: the newest that is no savepoint
	if !s.list[newest].Kind.IsSynchronous() {
		for keep >= 0 && s.list[keep].Kind.IsSavepoint() {
			keep--
		}
	}
	kept := s.list[:0:0]
	for i, c := range s.list {
		if excess > 0 && i != newest && i != keep {
			subsumed = append(subsumed, c)
			excess--
			continue
		}
		kept = append(kept, c)
	}
	s.list = kept
	return subsumed
}
