package ha

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirflow/weir"
)

// confirmKey exists never; that is what a confirmation checks beside the leadership.
const confirmKey = "confirm"

// Confirm returns nil if the store's leader leads at some moment during the call, else
// [ErrNotLeader]. What was read before it, since the leadership began, is then all that
// other leaders have written: who was paused and overtaken cannot tell otherwise. A
// transaction that changes nothing needs no settling, so it is sent until it is answered.
func (s *JobStore) Confirm(ctx context.Context) error {
	again := newBackoff()
	for {
		_, err := s.reg.Txn(ctx, s.guard, Op{Kind: OpCheck, Key: confirmKey})
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrDoubtful) && !errors.Is(err, ErrUnavailable) {
			return fmt.Errorf("confirm leadership: %w", err)
		}
		if err := again.wait(ctx, err); err != nil {
			return fmt.Errorf("confirm leadership: %w", err)
		}
	}
}

// DropChain removes all links of a job that has ended: its checkpoints are about to be
// deleted, since it ended in a way that its retention policy does not keep them for. The
// newest goes last. A chain that is empty is no error.
func (s *JobStore) DropChain(ctx context.Context, id weir.JobID) error {
	job, err := s.Job(ctx, id)
	if err != nil {
		return err
	}
	if !job.Status.Terminal {
		return fmt.Errorf("drop chain of job %s: %w", id, ErrNewestLink)
	}
	kvs, _, err := s.reg.List(ctx, chainPrefix(id))
	if err != nil {
		return fmt.Errorf("drop chain of job %s: %w", id, err)
	}
	for _, kv := range kvs {
		if _, err := Settle(ctx, s.reg, s.guard, Delete(kv)); err != nil {
			return fmt.Errorf("drop chain of job %s: %w", id, err)
		}
	}
	return nil
}

// DropLink removes the link of a snapshot from the chain of a job that has ended, since
// another job has claimed it: whose it is says the other one's chain. A job that is not
// recorded, that has no such link or that lives is left as it is.
func (s *JobStore) DropLink(ctx context.Context, id weir.JobID, metadata string) error {
	job, err := s.Job(ctx, id)
	if errors.Is(err, ErrNoJob) || err == nil && !job.Status.Terminal {
		return nil
	}
	if err != nil {
		return err
	}
	kvs, _, err := s.reg.List(ctx, chainPrefix(id))
	if err != nil {
		return fmt.Errorf("drop link of job %s: %w", id, err)
	}
	for _, kv := range kvs {
		l, err := decodeLink(id, kv)
		if err != nil {
			return err
		}
		if l.Metadata != metadata {
			continue
		}
		if _, err := Settle(ctx, s.reg, s.guard, Delete(kv)); err != nil {
			return fmt.Errorf("drop link %d of job %s: %w", l.Number, id, err)
		}
	}
	return nil
}
