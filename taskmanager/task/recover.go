package task

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/taskmanager/input"
)

// recover processes what was in flight when the snapshot was taken, one old channel after
// another, before the task runs (behaviour §20, §21.3). What producers send meanwhile
// waits in the channels. Graphs have no cycles, so consumers downstream, which make room,
// do not wait for this.
func (t *Task) recover(ctx context.Context) error {
	for i := range t.d.Recovered {
		if err := t.recoverChannel(ctx, &t.d.Recovered[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *Task) recoverChannel(ctx context.Context, r *rpc.RecoveredChannel) error {
	into, err := t.recovered(r)
	if err != nil {
		return err
	}
	x := t.in.Recover(into)
	for _, h := range r.Captured {
		if err := t.recoverHandle(ctx, x, h); err != nil {
			return t.recoveryFailed(ctx, r, err)
		}
	}
	if err := x.End(); err != nil {
		return t.recoveryFailed(ctx, r, err)
	}
	return nil
}

// recovered says where the data of an old channel belongs.
func (t *Task) recovered(r *rpc.RecoveredChannel) (into input.RecoveredChannel, err error) {
	if t.in == nil || r.Gate < 0 || r.Gate >= len(t.d.Inputs) || r.Channel >= len(t.d.Inputs[r.Gate].Channels) {
		return into, fmt.Errorf("deployment with data in flight to channel %d of input %d", r.Channel, r.Gate)
	}
	into.Gate, into.Channel = r.Gate, r.Channel
	if !r.Filter {
		return into, nil
	}
	if t.d.Inputs[r.Gate].Partitioning != jobgraph.Hash {
		return into, fmt.Errorf("deployment with data in flight to input %d for several subtasks, though it is not keyed", r.Gate)
	}
	groups, most := t.keyGroups(), t.vertex.MaxParallelism
	if planted.Is(planted.FilterOffByOne) {
		groups.Last++
	}
	into.Keep = func(hash uint64) bool { return groups.Contains(weir.KeyGroupOf(hash, most)) }
	return into, nil
}

// recoveryFailed names the old channel. What fails in an operator is the operator's.
func (t *Task) recoveryFailed(ctx context.Context, r *rpc.RecoveredChannel, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*weir.Failure](err); ok {
		return err
	}
	id := t.d.Graph.Edges[t.d.Inputs[r.Gate].Edge].ID()
	return outside("recover what was in flight from %s[%d] to %s[%d]: %v", id.From, r.Producer, id.To, r.Consumer, err)
}

// recoverHandle processes what one end of an old channel captured.
func (t *Task) recoverHandle(ctx context.Context, x *input.Recovery, h weir.StateHandle) (err error) {
	var r *snapshotmeta.ChannelStateReader
	if r, err = t.files().OpenChannelState(ctx, h); err != nil {
		return err
	}
	defer func() {
		if closed := r.Close(); err == nil {
			err = closed
		}
	}()
	for {
		base, b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		x.Feed(base, b)
		if err := t.runRecovered(ctx, x); err != nil {
			return err
		}
	}
}

// runRecovered is the task's loop for one chunk: letters are read, and full outputs are
// waited for, as ever.
func (t *Task) runRecovered(ctx context.Context, x *input.Recovery) error {
	for {
		t.betweenRecords()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.read(ctx); err != nil {
			return err
		}
		if !t.available() {
			t.flushAll()
			t.sleep(ctx, softBackPressured)
			continue
		}
		more, err := x.Step()
		if err != nil || !more {
			return err
		}
		t.flushIfRequested()
	}
}
