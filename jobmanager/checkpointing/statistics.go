package checkpointing

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// CheckpointStatus is where a checkpoint stands.
type CheckpointStatus uint8

// Checkpoint statuses.
const (
	InProgress CheckpointStatus = iota
	Completed
	Failed
)

func (s CheckpointStatus) String() string {
	return [...]string{"in progress", "completed", "failed"}[min(int(s), 2)]
}

// CheckpointStatistics is what is told of one snapshot.
type CheckpointStatistics struct {
	ID        weir.CheckpointID // NoCheckpoint: it failed before it had one
	Kind      weir.SnapshotKind
	Status    CheckpointStatus
	Triggered time.Time     // when it had its id
	Duration  time.Duration // from Triggered to its completion, to the abort, or so far
	Timeline  Timeline
	Bytes     int64 // of the snapshot when completed, else what was acknowledged so far
	// NewBytes is what was written for it; the rest of Bytes was there from earlier
	// ones.
	NewBytes       int64
	PersistedBytes int64  // in-flight bytes captured
	Unaligned      bool   // a subtask's snapshot did not wait for all barriers
	Metadata       string // blob name, when completed
	Reason         weir.FailureReason
	Message        string
	Tasks          int // awaited
	Acknowledged   int
	// Vertices sum up the subtasks, when the snapshot has ended.
	Vertices []VertexStatistics
	// Subtasks are those awaited, by vertex and subtask. They are dropped from all
	// but the newest snapshots of a large job.
	Subtasks []SubtaskStatistics
	// Late are those of Subtasks that acknowledged after the snapshot had failed: what
	// it would have waited for.
	Late []SubtaskStatistics
}

// SubtaskStatistics is one subtask's part.
type SubtaskStatistics struct {
	Attempt      weir.AttemptID
	Acknowledged time.Duration // after Triggered; 0: not
	Metrics      weir.CheckpointMetrics
}

// VertexStatistics sums up the subtasks of a vertex: bytes are added, durations are the
// longest of those that acknowledged.
type VertexStatistics struct {
	Vertex              int32
	Tasks, Acknowledged int
	Slowest             int32 // the subtask that acknowledged last; -1: none did
	// LastAck is when it did, after Triggered.
	LastAck, StartDelay, Alignment, Sync, Async time.Duration
	StateBytes, PersistedBytes, AlignedBytes    int64
}

// String is the one line that a log has of a checkpoint.
func (s CheckpointStatistics) String() string {
	if s.ID == weir.NoCheckpoint {
		return fmt.Sprintf("%s not triggered: %s: %s", s.Kind, s.Reason, s.Message)
	}
	text := fmt.Sprintf("%s %d %s after %s, %d of %d tasks, %d bytes",
		s.Kind, s.ID, s.Status, s.Duration, s.Acknowledged, s.Tasks, s.Bytes)
	if s.Unaligned {
		text = fmt.Sprintf("unaligned %s, %d of them in flight", text, s.PersistedBytes)
	}
	if s.Reason != weir.ReasonNone {
		text += fmt.Sprintf(": %s: %s", s.Reason, s.Message)
	}
	return text
}

// Statistics are a job's counts since its start (or since this leader's), and its
// recent snapshots.
type Statistics struct {
	Completed int64
	Failed    int64 // those that failed before they had an id included
	Pending   int64
	Restores  int64             // how often tasks were started from a snapshot
	Restored  *RestoredSnapshot // the last time; nil: never
	// LatestCompleted is the newest completed snapshot that is no savepoint,
	// LatestSavepoint the newest completed savepoint, LatestFailed the newest that
	// failed with an id. They may be older than all of Recent.
	LatestCompleted, LatestSavepoint, LatestFailed *CheckpointStatistics
	Recent                                         []CheckpointStatistics // newest first; those pending lead
}

// Bounded is s without the subtasks of the older ones of Recent, so that at most so many
// are left, and how many that are; the sums by vertex stay. s is not changed.
func (s Statistics) Bounded(subtasks int) (bounded Statistics, left int) {
	shared := true
	for i := range s.Recent {
		size := s.Recent[i].size()
		if left+size <= subtasks {
			left += size
			continue
		}
		if shared {
			s.Recent, shared = slices.Clone(s.Recent), false
		}
		s.Recent[i].Subtasks, s.Recent[i].Late = nil, nil
	}
	return s, left
}

// Total is the number of snapshots that were tried.
func (s Statistics) Total() int64 { return s.Completed + s.Failed + s.Pending }

// sumUp adds up the subtasks of each vertex.
func sumUp(subtasks []SubtaskStatistics) []VertexStatistics {
	var sums []VertexStatistics
	for i := range subtasks {
		t := &subtasks[i]
		if n := len(sums); n == 0 || sums[n-1].Vertex != t.Attempt.Vertex {
			sums = append(sums, VertexStatistics{Vertex: t.Attempt.Vertex, Slowest: -1})
		}
		v := &sums[len(sums)-1]
		v.Tasks++
		if t.Acknowledged == 0 {
			continue
		}
		v.Acknowledged++
		if t.Acknowledged > v.LastAck {
			v.LastAck, v.Slowest = t.Acknowledged, t.Attempt.Subtask
		}
		m := &t.Metrics
		v.StartDelay = max(v.StartDelay, m.StartDelay)
		v.Alignment = max(v.Alignment, m.AlignmentDuration)
		v.Sync = max(v.Sync, m.SyncDuration)
		v.Async = max(v.Async, m.AsyncDuration)
		v.StateBytes += m.StateBytes
		v.PersistedBytes += m.PersistedBytes
		v.AlignedBytes += m.AlignedBytes
	}
	return sums
}
