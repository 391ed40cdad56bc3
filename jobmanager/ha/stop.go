package ha

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirflow/weir"
)

// Stop is the wish to end a job with a savepoint, and what came of it. It is recorded
// before anything else is done for it, so that the next leader goes on with it, and a
// repeated request gets the same answer.
type Stop struct {
	RequestID string            `json:"requestId"`
	Kind      weir.SnapshotKind `json:"kind"` // suspend or terminate
	// Directory is where the savepoint's own directory is made.
	Directory string           `json:"directory"`
	Epoch     weir.LeaderEpoch `json:"epoch"` // of the leader that wrote it
	// Failure says that the stop is over and the job is not; empty: it is under way, or
	// the job has ended.
	Failure string `json:"failure,omitempty"`
	// Checkpoint and Metadata are the savepoint's, if there is one in spite of Failure.
	Checkpoint weir.CheckpointID `json:"checkpoint,omitempty"`
	Metadata   string            `json:"metadata,omitempty"`
}

// SetStop records the job's newest stop in place of what was recorded before. Only the
// job's loop may call it, once at a time. A job that has ended is an [ErrTerminal].
func (s *JobStore) SetStop(ctx context.Context, id weir.JobID, stop Stop) error {
	stop.Epoch, stop.Failure = s.guard, clip(stop.Failure)
	status, err := readUntilKnown(ctx, s.reg, statusKey(id))
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %s", ErrNoJob, id)
	}
	if err != nil {
		return fmt.Errorf("record stop of job %s: %w", id, err)
	}
	var now JobStatus
	if err := decode(status, &now); err != nil {
		return err
	}
	if now.Terminal {
		return fmt.Errorf("%w: job %s is %s", ErrTerminal, id, now.State)
	}
	op := Create(stopKey(id), encode(stop))
	old, err := readUntilKnown(ctx, s.reg, stopKey(id))
	if err == nil {
		op = Update(old, encode(stop))
	} else if !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("record stop of job %s: %w", id, err)
	}
	if _, err := Settle(ctx, s.reg, s.guard, op); err != nil {
		return fmt.Errorf("record stop of job %s: %w", id, err)
	}
	return nil
}

// Stop returns the job's newest stop, if one was ever asked for.
func (s *JobStore) Stop(ctx context.Context, id weir.JobID) (stop Stop, asked bool, err error) {
	kv, err := s.reg.Get(ctx, stopKey(id))
	switch {
	case errors.Is(err, ErrNotFound):
		return Stop{}, false, nil
	case err != nil:
		return Stop{}, false, fmt.Errorf("read stop of job %s: %w", id, err)
	}
	if err := decode(kv, &stop); err != nil {
		return Stop{}, false, err
	}
	if stop.RequestID == "" || !stop.Kind.IsSynchronous() || strings.TrimSpace(stop.Directory) == "" {
		return Stop{}, false, fmt.Errorf("%w: key %q: not a stop", ErrCorrupt, kv.Key)
	}
	return stop, true, nil
}
