package task

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// lingerTime bounds how long a task waits for missing barriers before it begins another
// record. Barriers of an unaligned checkpoint arrive within a fraction of a millisecond of
// each other; one that finds the next record begun waits for its end, and with it the
// checkpoint.
const lingerTime = 500 * time.Microsecond

// lingering is the checkpoint whose missing barriers the task waits for, or did.
type lingering struct {
	id    weir.CheckpointID
	until time.Time
}

// linger waits until something happens, if the task has taken its snapshot of a checkpoint
// that overtakes and not all barriers are in, but no longer than lingerTime for each
// checkpoint. It returns false if there is nothing to wait for.
func (t *Task) linger(ctx context.Context) bool {
	if t.in == nil || t.ended {
		return false
	}
	id := t.in.Pending()
	if id == weir.NoCheckpoint || !t.snapshot.Capturing(id) {
		return false
	}
	now := time.Now()
	if id != t.lingering.id {
		t.lingering = lingering{id, now.Add(lingerTime)}
	}
	left := t.lingering.until.Sub(now)
	if left <= 0 {
		return false
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-t.box.Wake():
	case <-t.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}
