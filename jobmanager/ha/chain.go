package ha

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirflow/weir"
)

// NextCheckpointID takes the next id of the job: larger than every id taken before,
// by whatever leader. It need not be settled: after a lost answer another id is
// taken, and the first one, if it was taken, is left out.
func (s *JobStore) NextCheckpointID(ctx context.Context, id weir.JobID) (weir.CheckpointID, error) {
	return s.takeCheckpointID(ctx, id, 0)
}

// SkipCheckpointIDs makes the next id larger than last, and never smaller than it
// was: a job that is restored from another's snapshot counts on from that one's id.
func (s *JobStore) SkipCheckpointIDs(ctx context.Context, id weir.JobID, last weir.CheckpointID) error {
	_, err := s.takeCheckpointID(ctx, id, last)
	return err
}

// takeCheckpointID raises the counter by one, and at least to the given id.
func (s *JobStore) takeCheckpointID(ctx context.Context, id weir.JobID, atLeast weir.CheckpointID) (weir.CheckpointID, error) {
	again := newBackoff()
	kv, err := s.jobKey(ctx, id, counterKey(id))
	for {
		if err != nil {
			return 0, fmt.Errorf("take a checkpoint id of job %s: %w", id, err)
		}
		var last counter
		if err := decode(kv, &last); err != nil {
			return 0, err
		}
		next := counter{Last: max(last.Last+1, atLeast)}
		_, err = s.reg.Txn(ctx, s.guard, Update(kv, encode(next)))
		var conflict *ConflictError
		switch {
		case err == nil:
			return next.Last, nil
		case errors.As(err, &conflict) && conflict.Actual != nil:
			kv, err = *conflict.Actual, nil
		case errors.Is(err, ErrDoubtful) && ctx.Err() == nil:
			if err = again.wait(ctx, err); err == nil {
				kv, err = readUntilKnown(ctx, s.reg, kv.Key)
			}
		}
	}
}

// Links returns the job's chain, oldest first.
func (s *JobStore) Links(ctx context.Context, id weir.JobID) ([]Link, error) {
	kvs, _, err := s.reg.List(ctx, chainPrefix(id))
	if err != nil {
		return nil, fmt.Errorf("read chain of job %s: %w", id, err)
	}
	links := make([]Link, 0, len(kvs))
	for _, kv := range kvs {
		l, err := decodeLink(id, kv)
		if err != nil {
			return nil, err
		}
		if n := len(links); n > 0 && (l.Checkpoint <= links[n-1].Checkpoint || l.Parent < links[n-1].Number) {
			return nil, fmt.Errorf("%w: link %d of job %s (checkpoint %d, parent %d) cannot follow link %d (checkpoint %d)",
				ErrCorrupt, l.Number, id, l.Checkpoint, l.Parent, links[n-1].Number, links[n-1].Checkpoint)
		}
		links = append(links, l)
	}
	return links, nil
}

func decodeLink(id weir.JobID, kv KV) (Link, error) {
	number, err := parseLinkKey(strings.TrimPrefix(kv.Key, chainPrefix(id)))
	if err != nil {
		return Link{}, err
	}
	var l Link
	if err := decode(kv, &l); err != nil {
		return Link{}, err
	}
	if l.Checkpoint <= 0 || l.Metadata == "" || l.Parent >= number {
		return Link{}, fmt.Errorf("%w: key %q: checkpoint %d, parent %d, metadata %q", ErrCorrupt, kv.Key, l.Checkpoint, l.Parent, l.Metadata)
	}
	l.Number = number
	return l, nil
}

// AddLink adds the next link to the job's chain: Number and Parent are those that
// follow newest, which the caller read or added last (the zero Link: the chain is
// empty). On success the snapshot is complete. [ErrOvertaken] means that the chain
// does not end in newest; [ErrNotLeader] that it was not added and never will be.
// After an [ErrDoubtful] the caller repeats the call with the same arguments.
//
// The link carries our epoch, so one that is already there with the same content is
// ours, whose answer was lost, and is success.
func (s *JobStore) AddLink(ctx context.Context, id weir.JobID, newest, next Link) (Link, error) {
	next.Number, next.Parent, next.Epoch = newest.Number+1, newest.Number, s.guard
	if next.Checkpoint <= newest.Checkpoint || next.Metadata == "" {
		return Link{}, fmt.Errorf("link %d of job %s: checkpoint %d cannot follow %d", next.Number, id, next.Checkpoint, newest.Checkpoint)
	}
	ops := []Op{Create(linkKey(id, next.Number), encode(next))}
	if newest.Number > 0 {
		parent, err := s.parent(ctx, id, newest)
		if err != nil {
			return Link{}, err
		}
		ops = append(ops, Unchanged(parent))
	}
	_, err := Settle(ctx, s.reg, s.guard, ops...)
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		err = fmt.Errorf("%w: %w", ErrOvertaken, err)
	}
	if err != nil {
		return Link{}, fmt.Errorf("add link %d (checkpoint %d) to the chain of job %s: %w", next.Number, next.Checkpoint, id, err)
	}
	return next, nil
}

// parent reads the link that the caller believes to be the newest.
func (s *JobStore) parent(ctx context.Context, id weir.JobID, newest Link) (KV, error) {
	kv, err := readUntilKnown(ctx, s.reg, linkKey(id, newest.Number))
	if errors.Is(err, ErrNotFound) {
		return KV{}, fmt.Errorf("%w: link %d of job %s is gone", ErrOvertaken, newest.Number, id)
	}
	if err != nil {
		return KV{}, fmt.Errorf("read link %d of job %s: %w", newest.Number, id, err)
	}
	there, err := decodeLink(id, kv)
	if err == nil && there.Checkpoint != newest.Checkpoint {
		err = fmt.Errorf("%w: link %d of job %s is checkpoint %d, want %d", ErrOvertaken, newest.Number, id, there.Checkpoint, newest.Checkpoint)
	}
	return kv, err
}

// RemoveLink removes a link that is not the newest. One that is absent is no error.
func (s *JobStore) RemoveLink(ctx context.Context, id weir.JobID, number uint64) error {
	kvs, _, err := s.reg.List(ctx, chainPrefix(id))
	if err != nil {
		return fmt.Errorf("remove link %d of job %s: %w", number, id, err)
	}
	for i, kv := range kvs {
		if kv.Key != linkKey(id, number) {
			continue
		}
		if i == len(kvs)-1 {
			return fmt.Errorf("%w: link %d of job %s", ErrNewestLink, number, id)
		}
		// A newer link is there, and must still be when this one goes.
		if _, err := Settle(ctx, s.reg, s.guard, Delete(kv), Unchanged(kvs[len(kvs)-1])); err != nil {
			return fmt.Errorf("remove link %d of job %s: %w", number, id, err)
		}
		return nil
	}
	return nil
}
