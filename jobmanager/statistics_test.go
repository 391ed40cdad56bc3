package jobmanager

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/rpc"
)

// A checkpoint costs the registry the same number of transactions, however many
// subtasks and checkpoints there are.
func TestRegistryWritesPerCheckpointAreConstant(t *testing.T) {
	counts := map[int]int64{}
	for _, parallelism := range []int{1, 60} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var writes atomic.Int64
			jm := w.manager(func(c *Config) {
				c.Registry = w.registry.Connect(c.CandidateID, ha.Hook{Before: func(_ context.Context, call ha.Call) error {
					if call.Method == "txn" {
						writes.Add(1)
					}
					return nil
				}})
			})
			w.fleet().join(jm, 1, func(r *rpc.Register) { r.Slots = 100 }).live(w.hearts())
			w.submit(jm, "job", fmt.Sprintf("parallelism.default=%d", parallelism))
			w.await(jm, "job", rpc.JobRunning)
			before := int64(0)
			for i := range 20 {
				_, err := jm.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "job", Kind: weir.Checkpoint})
				w.must(err)
				synctest.Wait()
				now := writes.Load()
				switch took := now - before; {
				case i == 4: // older ones are removed by now
					counts[parallelism] = took
				case i > 4 && took != counts[parallelism]:
					t.Errorf("checkpoint %d of %d subtasks took %d transactions, the fifth %d", i, parallelism, took, counts[parallelism])
				}
				before = now
			}
			l, err := jm.Checkpoints(t.Context(), "job")
			w.must(err)
			if n := len(l.Recent[0].Subtasks); n < parallelism {
				t.Fatalf("%d subtasks, want at least %d", n, parallelism)
			}
		})
	}
	if counts[1] != counts[60] || counts[1] == 0 || counts[1] > 3 {
		t.Errorf("transactions of a checkpoint by parallelism: %v, want the same: an id, a link, and a link that goes", counts)
	}
}

func TestStatisticsStayWhenTheJobHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		w.awaitCheckpoint(jm, "job", 3)
		w.take(jm, "job", "r1")
		w.must(jm.Cancel(t.Context(), "job"))
		w.await(jm, "job", rpc.JobCanceled)
		l, err := jm.Checkpoints(t.Context(), "job")
		w.must(err)
		c := l.Recent[0]
		_, linked := l.Recent[1].Step(rpc.StepLinked) // savepoints have no link
		if len(l.Recent) < 4 || len(c.Subtasks) == 0 || c.Subtasks[0].Vertex == "" || len(c.Vertices) == 0 || !linked ||
			c.Tasks != len(c.Subtasks) || c.Acknowledged != c.Tasks {
			t.Errorf("%d checkpoints, the newest %+v", len(l.Recent), c)
		}
		if l.Summary.Duration.Count < 4 || l.Latest.Completed == nil || l.Latest.Savepoint == nil || l.Latest.Failed != nil {
			t.Errorf("%+v", l)
		}
		if d, err := jm.Get(t.Context(), "job"); err != nil || len(d.Graph.Vertices) == 0 {
			t.Errorf("the graph of an ended job: %+v, %v", d.Graph, err)
		}
	})
}

func TestStatisticsOfEndedJobsAreBounded(t *testing.T) {
	t.Parallel()
	var ended []*entry
	for range 5 {
		r := &jobmaster.Report{}
		for range 10 {
			r.Checkpoints.Recent = append(r.Checkpoints.Recent, checkpointing.CheckpointStatistics{
				Subtasks: make([]checkpointing.SubtaskStatistics, 9000), Vertices: make([]checkpointing.VertexStatistics, 1),
			})
		}
		ended = append(ended, &entry{final: r})
	}
	for range 2 {
		boundStatistics(ended)
		total := 0
		for i, e := range ended {
			n := 0
			for _, c := range e.final.Checkpoints.Recent {
				if n += len(c.Subtasks); len(c.Vertices) != 1 {
					t.Error("the sums have gone")
				}
			}
			if want := []int{0, 0, 18_000, 90_000, 90_000}[i]; n != want {
				t.Errorf("job %d has %d subtasks, want %d", i, n, want)
			}
			total += n
		}
		if total > maxEndedSubtasks {
			t.Errorf("%d in all", total)
		}
	}
}

// A list fits a message whatever the size of the job: sums stay, subtasks of what is
// older go.
func TestListsOfCheckpointsAreBounded(t *testing.T) {
	t.Parallel()
	r := jobmaster.Report{}
	for i := range 3 {
		r.Checkpoints.Recent = append(r.Checkpoints.Recent, checkpointing.CheckpointStatistics{
			ID: weir.CheckpointID(9 - i), Tasks: 100_000, Subtasks: make([]checkpointing.SubtaskStatistics, 100_000),
			Vertices: make([]checkpointing.VertexStatistics, 1),
		})
	}
	l := checkpoints(r, nil, "")
	for i, want := range []int{100_000, 0, 0} {
		if c := l.Recent[i]; len(c.Subtasks) != want || len(c.Vertices) != 1 || c.ID != weir.CheckpointID(9-i) {
			t.Errorf("checkpoint %d has %d subtasks, want %d", c.ID, len(c.Subtasks), want)
		}
	}
	if len(r.Checkpoints.Recent[1].Subtasks) == 0 {
		t.Error("the report was changed")
	}
}
