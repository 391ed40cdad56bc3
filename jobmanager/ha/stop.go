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
	// Earlier are the stops before this one, oldest first, as far as they are remembered.
	Earlier []FailedStop `json:"earlier,omitempty"`
}

// FailedStop is a stop after which the job went on.
type FailedStop struct {
	RequestID  string            `json:"requestId"`
	Failure    string            `json:"failure"`
	Checkpoint weir.CheckpointID `json:"checkpoint,omitempty"`
	Metadata   string            `json:"metadata,omitempty"`
}

// maxEarlier is how many earlier stops are remembered.
const maxEarlier = 16

// Failed finds the stop of a request that has failed.
func (s *Stop) Failed(request string) (FailedStop, bool) {
	if s.RequestID == request && s.Failure != "" {
		return FailedStop{s.RequestID, s.Failure, s.Checkpoint, s.Metadata}, true
	}
	for _, f := range s.Earlier {
		if f.RequestID == request {
			return f, true
		}
	}
	return FailedStop{}, false
}

// maxStopFailure bounds the failure of a stop, in bytes.
const maxStopFailure = 2 << 10

// follow makes the stop remember what it replaces.
func (s *Stop) follow(old *Stop) {
	s.Earlier = old.Earlier
	if failed, ok := old.Failed(old.RequestID); ok && old.RequestID != s.RequestID {
		s.Earlier = append(s.Earlier[:len(s.Earlier):len(s.Earlier)], failed)
	}
	s.Earlier = s.Earlier[max(0, len(s.Earlier)-maxEarlier):]
}

// SetStop records the job's newest stop in place of what was recorded before. Only the
// job's loop may call it, once at a time. A job that has ended is an [ErrTerminal].
func (s *JobStore) SetStop(ctx context.Context, id weir.JobID, stop Stop) error {
	stop.Epoch = s.guard
	if len(stop.Failure) > maxStopFailure {
		stop.Failure = strings.ToValidUTF8(stop.Failure[:maxStopFailure], "") + " (cut off)"
	}
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
	old, err := readUntilKnown(ctx, s.reg, stopKey(id))
	op := Create(stopKey(id), encode(stop))
	switch {
	case err == nil:
		var was Stop
		if err := decode(old, &was); err != nil {
			return err
		}
		stop.follow(&was)
		op = Update(old, encode(stop))
	case !errors.Is(err, ErrNotFound):
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
