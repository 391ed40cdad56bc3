package jobmanager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/rpc"
)

var errDisk = errors.New("no space left on device")

func TestUnwritableCheckpointDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var full atomic.Bool
		jm := w.manager(func(c *Config) {
			c.Blobs = faulty.New(w.blobs, faulty.Hook{Before: func(_ context.Context, op faulty.Op, _ string) error {
				if full.Load() && (op == faulty.Create || op == faulty.Commit) {
					return errDisk
				}
				return nil
			}})
		})
		f := w.fleet()
		f.join(jm, 1).live(w.hearts())
		full.Store(true)
		_, err := jm.Submit(t.Context(), request("job"))
		w.wantError(err, rpc.CodeUnavailable, "no space left", "checkpoint directory")
		full.Store(false)
		w.submit(jm, "job", checkpointed)
		c := w.awaitCheckpoint(jm, "job", 1)
		full.Store(true)
		time.Sleep(5 * time.Second)
		list, err := jm.Checkpoints(t.Context(), "job")
		w.must(err)
		if list.Failed < 2 || list.Recent[1].Reason != weir.FinalizeCheckpointFailure || !strings.Contains(list.Recent[1].Message, "no space left") {
			t.Errorf("%d failed: %+v", list.Failed, list.Recent[1])
		}
		full.Store(false)
		w.awaitCheckpoint(jm, "job", c.ID+3)
		if d := w.await(jm, "job", rpc.JobRunning); d.Restarts != 0 {
			t.Errorf("a full disk restarted the job %d times", d.Restarts)
		}
	})
}

func TestLostAnswersOfEtcdLoseAndDoubleNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var calls atomic.Int64
		jm := w.manager(func(c *Config) {
			c.Registry = w.registry.Connect("flaky", ha.Hook{
				Before: func(_ context.Context, c ha.Call) error {
					if c.Method == "txn" && calls.Add(1)%5 == 0 {
						return errors.New("not sent")
					}
					return nil
				},
				After: func(_ context.Context, c ha.Call) error {
					if c.Method == "txn" && calls.Load()%3 == 0 {
						return errors.New("answer lost")
					}
					return nil
				},
			})
		})
		f := w.fleet()
		f.join(jm, 1).live(w.hearts())
		id := w.submit(jm, "job", checkpointed, "execution.checkpointing.num-retained=50")
		w.awaitCheckpoint(jm, "job", 12)
		links, err := ha.NewJobStore(w.registry.Connect("reader", ha.Hook{}), 0).Links(t.Context(), id)
		w.must(err)
		seen := map[weir.CheckpointID]bool{}
		for i, l := range links {
			if seen[l.Checkpoint] || l.Number != uint64(i+1) || l.Parent != uint64(i) {
				t.Errorf("link %d: %+v", i, l)
			}
			seen[l.Checkpoint] = true
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, c := range f.mu.complete {
			if !seen[c] {
				t.Errorf("checkpoint %d was notified as complete, and is no link", c)
			}
		}
		if len(links) < 8 || len(f.mu.complete) == 0 {
			t.Errorf("%d links, %d notifications", len(links), len(f.mu.complete))
		}
	})
}

func TestDamagedBodyFailsItsJobOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1)
		bad := w.submit(jm, "bad", checkpointed)
		w.must(jm.Stop(t.Context()))
		body := w.read(jobmaster.BodyName(bad))
		body[len(body)/2] ^= 1
		w.must(w.blobs.Delete(t.Context(), jobmaster.BodyName(bad)))
		w.write(jobmaster.BodyName(bad), body)

		next := w.manager()
		f.join(next, 1, func(r *rpc.Register) { r.Incarnation = 2 }).live(w.hearts())
		w.submit(next, "good", checkpointed)
		w.await(next, "good", rpc.JobRunning)
		if d := w.await(next, "bad", rpc.JobFailed); !strings.Contains(d.Detail, "checksum") {
			t.Errorf("detail %q", d.Detail)
		}
	})
}

// A checkpoint directory that is not mounted when the JobManager starts must not cost
// the jobs that have their checkpoints in it.
func TestJobsWaitForTheirCheckpointDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1)
		id := w.submit(jm, "job", checkpointed)
		c := w.awaitCheckpoint(jm, "job", 2)
		w.must(jm.Stop(t.Context()))

		var mounted atomic.Bool
		next := w.manager(func(c *Config) {
			c.Blobs = faulty.New(w.blobs, faulty.Hook{Before: func(_ context.Context, op faulty.Op, _ string) error {
				if (op == faulty.Open || op == faulty.Stat) && !mounted.Load() {
					return blobstore.ErrNotFound
				}
				return nil
			}})
		})
		f.join(next, 1, func(r *rpc.Register) { r.Incarnation = 2 }).live(w.hearts())
		time.Sleep(5 * time.Second)
		if d := w.await(next, "job", rpc.JobInitializing); !strings.Contains(d.Detail, "not found") {
			t.Errorf("detail %q", d.Detail)
		}
		mounted.Store(true)
		w.await(next, "job", rpc.JobRunning)
		last := f.deployments()[len(f.deployments())-1]
		if last.RestoredFrom < c.ID {
			t.Errorf("it resumes from %d, want at least %d", last.RestoredFrom, c.ID)
		}

		mounted.Store(false)
		f.fail(id, 1, 0, &weir.Failure{Message: "boom"})
		time.Sleep(5 * time.Second)
		w.await(next, "job", rpc.JobRestarting)
		mounted.Store(true)
		w.await(next, "job", rpc.JobRunning)
	})
}

func TestJobThatCannotBeReadYetIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm := w.manager()
		w.submit(jm, "job", checkpointed)
		w.must(jm.Stop(t.Context()))
		next := w.manager(func(c *Config) {
			c.Blobs = faulty.New(w.blobs, faulty.Hook{Before: func(_ context.Context, op faulty.Op, _ string) error {
				if op == faulty.Open {
					return errDisk
				}
				return nil
			}})
		})
		time.Sleep(5 * time.Second)
		w.await(next, "job", rpc.JobInitializing)
		w.must(next.Cancel(t.Context(), "job"))
		w.await(next, "job", rpc.JobCanceled)
	})
}

func TestPanickingCoreFailsItsJobOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.logger = w.logger.WithOptions(zap.Hooks(func(e zapcore.Entry) error {
			if e.Message == "task failed" {
				panic("a bug in the loop")
			}
			return nil
		}))
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		id := w.submit(jm, "job", checkpointed)
		w.submit(jm, "good", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		w.await(jm, "good", rpc.JobRunning)
		f.fail(id, 1, 0, &weir.Failure{Message: "boom"}) // which is logged
		if d := w.await(jm, "job", rpc.JobFailed); !strings.Contains(d.Detail, "panic") || d.Failure.Stack == "" {
			t.Errorf("detail %q", d.Detail)
		}
		w.await(jm, "good", rpc.JobRunning)
		if n := f.running(); n != 2 {
			t.Errorf("%d tasks run, want those of the other job", n)
		}
		// Its slots are free again.
		w.submit(jm, "next")
		w.await(jm, "next", rpc.JobRunning)
	})
}

func TestOddSessionsAreEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		handler, err := jm.Accept(t.Context())
		w.must(err)
		early := &fakeTM{f: f, handler: handler}
		handler.Receive(early, rpc.Heartbeat{})
		greedy := f.join(jm, 1, func(r *rpc.Register) { r.Slots = 1 << 30 })
		twice := f.join(jm, 2)
		handler.Receive(twice, rpc.Register{Registration: twice.reg})
		wrong := f.join(jm, 3)
		handler.Receive(wrong, rpc.Deploy{})
		synctest.Wait()
		for i, tm := range []*fakeTM{early, greedy, twice, wrong} {
			if tm.closedBy() == nil {
				t.Errorf("session %d is still open", i)
			}
		}
		// Reports of attempts nobody knows are acknowledged, so that they end.
		tm := f.join(jm, 4)
		handler.Receive(tm, rpc.TaskStateChanged{Attempt: weir.AttemptID{Job: weir.JobID{9}, N: 1}, State: rpc.TaskFailed})
		handler.Receive(tm, rpc.AcknowledgeCheckpoint{Attempt: weir.AttemptID{Job: weir.JobID{9}, Vertex: -1, N: 1}})
		synctest.Wait()
		last := tm.messages()[len(tm.messages())-1]
		if _, ok := last.(rpc.Forget); !ok {
			t.Errorf("the answer is %T", last)
		}
		info, err := jm.Cluster(t.Context())
		w.must(err)
		if len(info.TaskManagers) != 1 {
			t.Errorf("%d TaskManagers are registered", len(info.TaskManagers))
		}
	})
}

// TestOldBodiesAreRead reads a body of each version ever written.
func TestOldBodiesAreRead(t *testing.T) {
	want := &jobmaster.Submission{
		Name: "job", Entrypoint: "demo", Params: map[string]string{"rate": "5"}, RequestID: "r", CodeID: "c",
		Options: map[string]string{"parallelism.default": "2"}, GraphText: "text",
		Graph: &jobgraph.JobGraph{Name: "job", Vertices: []jobgraph.Vertex{{
			Name: "src", Operators: []string{"src"}, IDs: []weir.OperatorID{weir.OperatorIDOf("src")}, Source: true, Parallelism: 2, MaxParallelism: 128,
		}}},
		From: &jobmaster.Origin{Path: "/ck/j/chk-7", Metadata: "j/chk-7/_metadata", Checkpoint: 7, Bytes: 9},
	}
	golden := filepath.Join("testdata", "formats", "job-1")
	if os.Getenv("WEIR_GOLDEN") != "" {
		body, err := jobmaster.EncodeSubmission(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	body, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, err := jobmaster.DecodeSubmission(body)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v", err, got)
	}
}
