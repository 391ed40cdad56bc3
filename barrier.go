package weir

import (
	"fmt"
	"time"
)

// SnapshotKind says what a snapshot is for (behaviour §10).
type SnapshotKind uint8

// Kinds of snapshots.
const (
	Checkpoint         SnapshotKind = iota // periodic or manual, as configured
	FullCheckpoint                         // shares no file with an earlier snapshot
	Savepoint                              // the user's, in the canonical format
	NativeSavepoint                        // the user's, in the backend's own format
	SuspendSavepoint                       // synchronous: stop without drain
	TerminateSavepoint                     // synchronous: stop with drain
)

var snapshotKindNames = [...]string{"checkpoint", "full-checkpoint", "savepoint", "native-savepoint", "suspend-savepoint", "terminate-savepoint"}

func (k SnapshotKind) String() string { return name(snapshotKindNames[:], int(k), "SnapshotKind") }

// IsSavepoint says whether the snapshot belongs to the user: never subsumed,
// never deleted by us.
func (k SnapshotKind) IsSavepoint() bool { return k >= Savepoint }

// IsSynchronous says whether tasks stop at the snapshot (stop-with-savepoint).
func (k SnapshotKind) IsSynchronous() bool { return k >= SuspendSavepoint }

// Drains says whether sources end their data, so that windows fire, before the
// snapshot (stop with drain).
func (k SnapshotKind) Drains() bool { return k == TerminateSavepoint }

// Alignment says what a task does between the first and the last barrier (behaviour §3, §17).
type Alignment uint8

// Alignments.
const (
	Aligned       Alignment = iota // block channels that delivered the barrier
	AtLeastOnce                    // never block
	Unaligned                      // overtake, and capture what was in flight
	ForcedAligned                  // unaligned in general, aligned on this edge
)

var alignmentNames = [...]string{"aligned", "at-least-once", "unaligned", "forced-aligned"}

func (a Alignment) String() string { return name(alignmentNames[:], int(a), "Alignment") }

// CheckpointOptions travel from the trigger through every barrier to every task.
type CheckpointOptions struct {
	Kind      SnapshotKind
	Alignment Alignment
	// Timeout is the age at which an aligned barrier turns unaligned; 0 means never.
	Timeout time.Duration
	// Location is the directory, relative to the job's checkpoint store, for files
	// of this snapshot alone, for example "chk-7".
	Location string
}

// Barrier separates what belongs to a checkpoint from what does not.
type Barrier struct {
	ID CheckpointID
	// Age is the time since the checkpoint was triggered, as far as known where the
	// barrier is now: each hop adds what the barrier spent there, so that the
	// clocks of hosts need not agree.
	Age     time.Duration
	Options CheckpointOptions
}

func (b Barrier) String() string {
	return fmt.Sprintf("barrier %d %s", b.ID, b.Options.Alignment)
}

// Watermark promises that no later record has a smaller or equal timestamp
// (milliseconds since the Unix epoch).
type Watermark int64

// Bounds of watermarks.
const (
	MinWatermark Watermark = -1 << 63
	MaxWatermark Watermark = 1<<63 - 1
)

func name(names []string, i int, typ string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", typ, i)
}
