package jobmanager

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// TestStoreThatDeletesNothingStarvesNothing: field report B17, with a store that refuses
// and with one that does not answer.
func TestStoreThatDeletesNothingStarvesNothing(t *testing.T) {
	refuse := func(context.Context) error { return errors.New("delete is not allowed") }
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for name, harm := range map[string]func(context.Context) error{"refuses": refuse, "hangs": hang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var harmed atomic.Bool
				var tries atomic.Int64
				harmed.Store(true)
				jm := w.manager(func(c *Config) {
					c.Blobs = faulty.New(w.blobs, faulty.Hook{Before: func(ctx context.Context, op faulty.Op, _ string) error {
						if op != faulty.Delete || !harmed.Load() {
							return nil
						}
						tries.Add(1)
						return harm(ctx)
					}})
				})
				f := w.fleet()
				f.join(jm, 1).live(w.hearts())
				job := w.submit(jm, "job", checkpointed)
				const life = 10 * time.Minute
				time.Sleep(life)
				list, err := jm.Checkpoints(t.Context(), "job")
				w.must(err)
				if list.Failed != 0 || list.Completed < 500 {
					t.Errorf("in %s %d checkpoints completed and %d failed", life, list.Completed, list.Failed)
				}
				if n := tries.Load(); n > 100 {
					t.Errorf("%d attempts to delete in %s: no back-off", n, life)
				}
				harmed.Store(false)
				time.Sleep(3 * lastRetryBound)
				links, err := ha.NewJobStore(w.registry.Connect("test", ha.Hook{}), 0).Links(t.Context(), job)
				w.must(err)
				kept := map[string]bool{}
				for _, l := range links {
					kept[l.Metadata] = true
				}
				for _, n := range storetest.Names(t, w.blobs, snapshotmeta.JobDir(job)+"/chk-") {
					if dir := n[:strings.LastIndexByte(n, '/')]; !kept[dir+"/"+snapshotmeta.MetadataFile] && !pendingDir(links[len(links)-1].Checkpoint, dir) {
						t.Errorf("%s is left", n)
					}
				}
				w.must(jm.Cancel(t.Context(), "job"))
				w.await(jm, "job", rpc.JobCanceled)
			})
		})
	}
}

// lastRetryBound is longer than the longest pause between deletions.
const lastRetryBound = 6 * time.Minute

// pendingDir says whether a checkpoint's directory is newer than the newest link.
func pendingDir(newest weir.CheckpointID, dir string) bool {
	for id := newest + 1; id < newest+3; id++ {
		if strings.HasSuffix(dir, "/"+snapshotmeta.Dir(id)) {
			return true
		}
	}
	return false
}
