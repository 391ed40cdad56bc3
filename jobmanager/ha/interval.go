package ha

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// interval is the value of an interval key.
type interval struct {
	Nanoseconds int64 `json:"nanoseconds"` // 0: no periodic checkpoints
}

// SetCheckpointInterval records the interval of periodic checkpoints that a running job
// was given in place of that of its options, so that the next leader knows it; 0 means
// none. A job that has ended is an [ErrTerminal].
func (s *JobStore) SetCheckpointInterval(ctx context.Context, id weir.JobID, every time.Duration) error {
	status, err := s.jobKey(ctx, id, statusKey(id))
	if err != nil {
		return err
	}
	var now JobStatus
	if err := decode(status, &now); err != nil {
		return err
	}
	if now.Terminal {
		return fmt.Errorf("%w: job %s is %s", ErrTerminal, id, now.State)
	}
	value := encode(interval{int64(every)})
	op := Create(intervalKey(id), value)
	switch old, err := readUntilKnown(ctx, s.reg, intervalKey(id)); {
	case err == nil:
		op = Update(old, value)
	case !errors.Is(err, ErrNotFound):
		return fmt.Errorf("record checkpoint interval of job %s: %w", id, err)
	}
	if _, err := Settle(ctx, s.reg, s.guard, op); err != nil {
		return fmt.Errorf("record checkpoint interval of job %s: %w", id, err)
	}
	return nil
}

// CheckpointInterval returns what SetCheckpointInterval recorded, if it did.
func (s *JobStore) CheckpointInterval(ctx context.Context, id weir.JobID) (every time.Duration, set bool, err error) {
	kv, err := s.reg.Get(ctx, intervalKey(id))
	switch {
	case errors.Is(err, ErrNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("read checkpoint interval of job %s: %w", id, err)
	}
	var v interval
	if err := decode(kv, &v); err != nil {
		return 0, false, err
	}
	if v.Nanoseconds < 0 {
		return 0, false, fmt.Errorf("%w: key %q: %d is negative", ErrCorrupt, kv.Key, v.Nanoseconds)
	}
	return time.Duration(v.Nanoseconds), true, nil
}
