package taskmanager_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// checkpointed deploys a job that waits for its last checkpoint.
func (c *cluster) checkpointed(p, q int) *job {
	j := c.newJob(p, q)
	j.edit = func(d *rpc.TaskDeployment) { d.Options.Checkpointing = true }
	return j
}

// each calls fn for all subtasks.
func (j *job) each(fn func(w *worker, a weir.AttemptID)) {
	for v := range j.graph.Vertices {
		for i := range j.graph.Vertices[v].Parallelism {
			fn(j.workerOf(i), j.attempt(v, i))
		}
	}
}

func (j *job) complete(id weir.CheckpointID) {
	j.each(func(w *worker, a weir.AttemptID) { w.say(rpc.NotifyCheckpointComplete{Attempt: a, Checkpoint: id}) })
}

// stop triggers a synchronous savepoint.
func (j *job) stop(id weir.CheckpointID, kind weir.SnapshotKind) {
	for i := range j.graph.Vertices[0].Parallelism {
		j.workerOf(i).say(rpc.TriggerCheckpoint{Attempt: j.attempt(0, i), Barrier: weir.Barrier{
			ID: id, Options: weir.CheckpointOptions{Kind: kind, Location: fmt.Sprintf("//savepoints/savepoint-%d", id)},
		}})
	}
}

// expectEnds fails unless operators have heard just this of the end of their data.
func (c *cluster) expectEnds(want ...string) {
	c.t.Helper()
	c.catalog.mu.Lock()
	defer c.catalog.mu.Unlock()
	got := slices.Sorted(slices.Values(c.catalog.ends))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.t.Errorf("operators have heard %q of the end, want %q", got, want)
	}
}

// TestStop: sources stop at the barrier of a synchronous savepoint, and tasks end when just
// that one is complete.
func TestStop(t *testing.T) {
	stop := func(t *testing.T, kind weir.SnapshotKind, ends ...string) {
		inCluster(t, 2, nil, func(c *cluster) {
			c.catalog.interval, c.catalog.timers = time.Millisecond, true
			j := c.checkpointed(2, 1)
			j.deploy(0, nil)
			c.heard(300 * time.Millisecond)
			j.stop(3, kind)
			all := c.heard(5 * time.Second)
			acks := of[rpc.AcknowledgeCheckpoint](all)
			if len(acks) != 3 {
				t.Fatalf("%d acknowledgements, want 3: %v", len(acks), all)
			}
			for _, a := range acks {
				if a.State.Finished != kind.Drains() {
					t.Errorf("%s says finished: %t", a.Attempt, a.State.Finished)
				}
				for _, op := range a.State.Operators {
					for _, k := range op.Keyed {
						if f := k.Handle.File; f != "" && !strings.HasPrefix(f, "savepoint-3/") {
							t.Errorf("state is in %s", f)
						}
					}
				}
			}
			c.expectEnds(ends...)
			j.complete(4)
			for _, m := range of[rpc.TaskStateChanged](c.heard(time.Second)) {
				t.Errorf("%s is %s, and its savepoint is not complete", m.Attempt, m.State)
			}
			j.complete(3)
			all = c.heard(time.Second)
			j.each(func(_ *worker, a weir.AttemptID) { c.expectStates(a, all, rpc.TaskFinished) })
			if emitted, closed := uint64(len(c.catalog.counts)), c.catalog.sums; closed == 0 || emitted == 0 {
				t.Errorf("nothing was counted")
			}
			if len(c.catalog.fired) > 0 {
				t.Errorf("%d timers fired", len(c.catalog.fired))
			}
		})
	}
	t.Run("O-SWS-04_drain", func(t *testing.T) {
		stop(t, weir.TerminateSavepoint, "numbers finish", "numbers finish", "count watermark", "count end of input 0", "count finish")
	})
	t.Run("O-SWS-04_suspend", func(t *testing.T) { stop(t, weir.SuspendSavepoint) })
	t.Run("aborted", func(t *testing.T) {
		inCluster(t, 1, nil, func(c *cluster) {
			c.catalog.silent = true
			j := c.checkpointed(1, 1)
			j.deploy(0, nil)
			c.heard(time.Second)
			j.stop(3, weir.SuspendSavepoint)
			c.heard(time.Second)
			c.workers[0].say(rpc.NotifyCheckpointAborted{Attempt: j.attempt(0, 0), Checkpoint: 3})
			f := c.expectStates(j.attempt(0, 0), c.heard(time.Second), rpc.TaskFailed)
			if f == nil || !strings.Contains(f.Error(), "stop with savepoint failed") {
				t.Errorf("failure %v", f)
			}
		})
	})
	t.Run("aborted_before_its_trigger", func(t *testing.T) {
		inCluster(t, 1, nil, func(c *cluster) {
			c.catalog.silent = true
			j := c.checkpointed(1, 1)
			j.deploy(0, nil)
			c.heard(time.Second)
			c.workers[0].say(rpc.NotifyCheckpointAborted{Attempt: j.attempt(0, 0), Checkpoint: 3})
			c.heard(time.Second)
			j.stop(3, weir.SuspendSavepoint)
			if f := c.expectStates(j.attempt(0, 0), c.heard(time.Second), rpc.TaskFailed); f == nil {
				t.Errorf("the source has stopped, and goes on waiting")
			}
		})
	})
}

// TestFinal: a task that has reached the end of its data waits for a checkpoint that it
// took after that.
func TestFinal(t *testing.T) {
	t.Run("O-FIN-01_waits_for_one_taken_after_the_end", func(t *testing.T) {
		inCluster(t, 2, nil, func(c *cluster) {
			c.catalog.interval = time.Millisecond
			j := c.checkpointed(2, 2)
			j.deploy(0, nil)
			c.heard(300 * time.Millisecond)
			j.trigger(5)
			all := c.heard(5 * time.Second)
			if n := len(of[rpc.EndOfData](all)); n != 4 {
				t.Fatalf("%d tasks say that their data has ended, want 4", n)
			}
			for _, a := range of[rpc.AcknowledgeCheckpoint](all) {
				if a.State.Finished {
					t.Errorf("%s had finished at 5", a.Attempt)
				}
			}
			j.complete(5)
			for _, m := range of[rpc.TaskStateChanged](c.heard(time.Second)) {
				t.Errorf("%s is %s after a checkpoint from before its end", m.Attempt, m.State)
			}
			j.trigger(6)
			acks := of[rpc.AcknowledgeCheckpoint](c.heard(time.Second))
			for _, a := range acks {
				if !a.State.Finished {
					t.Errorf("%s had not finished at 6", a.Attempt)
				}
			}
			if want := uint64(2 * c.catalog.limit); len(acks) != 4 || c.counted(acks) != want {
				t.Errorf("%d acknowledgements, %d numbers in them, want 4 and %d", len(acks), c.counted(acks), want)
			}
			// The notification of 6 was lost; the next abort makes up for it.
			j.each(func(w *worker, a weir.AttemptID) {
				w.say(rpc.NotifyCheckpointAborted{Attempt: a, Checkpoint: 7, LatestCompleted: 6})
			})
			all = c.heard(time.Second)
			j.each(func(_ *worker, a weir.AttemptID) { c.expectStates(a, all, rpc.TaskFinished) })
		})
	})
	t.Run("restored_as_finished", func(t *testing.T) {
		inCluster(t, 2, nil, func(c *cluster) {
			j := c.checkpointed(2, 2)
			j.deploy(0, nil)
			c.heard(5 * time.Second)
			j.trigger(1)
			acks := of[rpc.AcknowledgeCheckpoint](c.heard(time.Second))
			j.cancel()
			c.heard(time.Second)
			c.catalog.ends, c.catalog.sums = nil, 0
			j.n++
			j.edit = func(d *rpc.TaskDeployment) { d.Finished = true }
			j.deploy(1, acks)
			all := c.heard(time.Second)
			j.each(func(_ *worker, a weir.AttemptID) {
				c.expectStates(a, all, rpc.TaskInitializing, rpc.TaskRunning, rpc.TaskFinished)
			})
			c.expectEnds()
			if want := uint64(2 * c.catalog.limit * (c.catalog.limit - 1) / 2); c.catalog.sums != want {
				t.Errorf("counted %d, want %d", c.catalog.sums, want)
			}
		})
	})
}
