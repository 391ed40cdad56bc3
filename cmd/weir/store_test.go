package main

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

var errNoSpace = errors.New("no space left on device")

// A store that refuses some of its calls fails checkpoints, and nothing else; when it
// takes them again, checkpoints go on.
func TestStoreThatFailsFailsCheckpointsOnly(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		op   faulty.Op
		of   func(name string) bool
	}{
		{"no state file can be made", faulty.Create, func(name string) bool { return !strings.HasSuffix(name, "_metadata") }},
		{"no state file can be written", faulty.Write, func(name string) bool { return !strings.HasSuffix(name, "_metadata") }},
		{"no metadata can be made", faulty.Create, func(name string) bool { return strings.HasSuffix(name, "_metadata") }},
		{"no metadata can be committed", faulty.Commit, func(name string) bool { return strings.HasSuffix(name, "_metadata") }},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			var full atomic.Bool
			inner := mem.New()
			store := faulty.New(inner, faulty.Hook{Before: func(_ context.Context, op faulty.Op, name string) error {
				if full.Load() && op == x.op && x.of(name) {
					return errNoSpace
				}
				return nil
			}})
			c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{checkpointdemo.Job}, Store: store, TaskManagers: 2})
			const records, keys = 20000, 2000 // enough for state files
			reply, err := c.Gateway().Submit(t.Context(), rpc.SubmitRequest{
				Entrypoint: checkpointdemo.Name,
				Params:     map[string]string{"records": itoa(records), "keys": itoa(keys), "rate": "20000", "size": "20"},
				Options:    map[string]string{"execution.checkpointing.interval": "50ms", "execution.checkpointing.data-inline-threshold": "1kb"},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			awaitNext := func(after weir.CheckpointID) rpc.CheckpointInfo {
				info, err := c.AwaitCheckpoint(ctx, reply.Job, after)
				if err != nil {
					t.Fatal(err)
				}
				return info
			}
			awaitNext(0)
			full.Store(true)
			failed := awaitFailure(t, c, reply.Job)
			if !strings.Contains(failed.Message, errNoSpace.Error()) {
				t.Errorf("checkpoint %d failed with %s: %q", failed.ID, failed.Reason, failed.Message)
			}
			full.Store(false)
			info := awaitNext(failed.ID)
			want := checkpointdemo.Expected(records, keys)
			for {
				got, err := checkpointdemo.ReadState(ctx, inner, snapshotmeta.JobDir(reply.Job)+"/"+snapshotmeta.Dir(info.ID))
				if err == nil && maps.Equal(got, want) {
					break
				}
				info = awaitNext(info.ID) // not at the end yet, or deleted meanwhile
			}
			if d, err := c.Gateway().Get(ctx, reply.Job.String()); err != nil || d.Restarts != 0 || !client.Running(d) {
				t.Errorf("the job is %s after %d restarts: %v", d.Status, d.Restarts, err)
			}
		})
	}
}

func awaitFailure(t *testing.T, c *minicluster.Cluster, job weir.JobID) rpc.CheckpointInfo {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		l, err := c.Gateway().Checkpoints(t.Context(), job.String())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range l.Recent {
			if info.Status == rpc.CheckpointFailed {
				return info
			}
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("no checkpoint fails")
		}
	}
}
