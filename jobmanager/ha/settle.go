package ha

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
)

const (
	settleFirstPause = 20 * time.Millisecond
	settleMaxPause   = time.Second
)

// Settle makes the transaction and does not return before its end is known, or
// ctx ends: then, and only then, is the error an [ErrDoubtful], and the caller may
// call again with the same arguments.
//
// After a lost answer the same transaction is sent again, which invariant 2 makes
// harmless: whichever copy comes first changes the revisions that the others expect.
// So a refusal needs a look at the keys, be it a conflict or [ErrNotLeader], after
// which nothing of ours can be applied any more: if every key is as the ops make it,
// an earlier copy was applied, and that is success. Values must therefore tell their
// writers apart, where another could write the same.
func Settle(ctx context.Context, reg Registry, guard weir.LeaderEpoch, ops ...Op) (Revision, error) {
	again := newBackoff()
	for {
		rev, err := reg.Txn(ctx, guard, ops...)
		if isRefusal(err) {
			rev, err = settled(ctx, reg, ops, err)
		}
		if err == nil || !errors.Is(err, ErrDoubtful) {
			return rev, err
		}
		if planted.Is(planted.LostAnswerIsRefusal) {
			return 0, err
		}
		if err := again.wait(ctx, err); err != nil {
			return 0, err
		}
	}
}

// readUntilKnown reads a key until there is an answer, which may be [ErrNotFound], or
// ctx ends; then the error is an [ErrDoubtful], for the caller is about to write.
func readUntilKnown(ctx context.Context, reg Registry, key string) (KV, error) {
	again := newBackoff()
	for {
		kv, err := reg.Get(ctx, key)
		if err == nil || errors.Is(err, ErrNotFound) {
			return kv, err
		}
		if err := again.wait(ctx, err); err != nil {
			return KV{}, err
		}
	}
}

// backoff is the pause between two tries of one call.
type backoff struct {
	next time.Duration
}

func newBackoff() *backoff { return &backoff{next: settleFirstPause} }

// wait waits for the pause after a call that had no answer, as why says. It returns
// an [ErrDoubtful] if there is no use in another call: ctx has ended or the registry
// is closed.
func (b *backoff) wait(ctx context.Context, why error) error {
	if errors.Is(why, ErrClosed) {
		return fmt.Errorf("%w (%w)", ErrDoubtful, why)
	}
	t := time.NewTimer(b.next)
	defer t.Stop()
	b.next = min(2*b.next, settleMaxPause)
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", ErrDoubtful, context.Cause(ctx))
	}
}
func isRefusal(err error) bool {
	var conflict *ConflictError
	return errors.Is(err, ErrNotLeader) || errors.As(err, &conflict)
}

// settled reads what the refused transaction would have written. If all of it is
// there, an earlier copy did it; else the refusal stands. A read without an answer
// leaves the doubt.
func settled(ctx context.Context, reg Registry, ops []Op, refusal error) (Revision, error) {
	var rev Revision
	wrote := false
	for _, op := range ops {
		if op.Kind == OpCheck {
			continue
		}
		kv, err := reg.Get(ctx, op.Key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return 0, fmt.Errorf("%w: %w", ErrDoubtful, err)
		}
		absent := err != nil
		if absent != (op.Kind == OpDelete) {
			return 0, refusal
		}
		if op.Kind == OpPut {
			if !bytes.Equal(kv.Value, op.Value) {
				return 0, refusal
			}
			rev = kv.ModRevision
		}
		wrote = true
	}
	if !wrote {
		return 0, refusal
	}
	return rev, nil
}
