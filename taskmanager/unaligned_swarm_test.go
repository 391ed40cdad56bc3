package taskmanager_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// TestAnyRoundsOfCheckpointsAndRestoresCountOnce draws jobs, checkpoints of all kinds that
// overtake, time out, align or are abandoned while the next starts, and restores from the
// last that was complete, at any parallelism, until all is counted.
func TestAnyRoundsOfCheckpointsAndRestoresCountOnce(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inCluster(t, 2, nil, func(c *cluster) {
				r := rand.New(rand.NewPCG(seed, 3))
				c.catalog.size = []int{100, 1000, 9000, 40_000, 70_000}[r.IntN(5)]
				c.catalog.limit = 200 + r.IntN(300)
				p := 1 + r.IntN(3)
				s := swarm{c: c, r: r, j: c.newOvertakingJob(p, 1+r.IntN(4))}
				s.deploy(s.j)
				for range 1 + r.IntN(4) {
					s.round()
					s.again(p)
				}
				s.again(p)
				c.heard(time.Minute)
				if n := uint64(c.catalog.limit); c.catalog.sums != uint64(p)*n*(n-1)/2 {
					t.Errorf("numbers counted add up to %d, want %d", c.catalog.sums, uint64(p)*n*(n-1)/2)
				}
			})
		})
	}
}

// swarm is one job through its restarts, and its last complete checkpoint.
type swarm struct {
	c    *cluster
	r    *rand.Rand
	j    *job
	next weir.CheckpointID
	last weir.CheckpointID
	of   *job // that last was taken of
	acks []rpc.AcknowledgeCheckpoint
}

func (s *swarm) deploy(j *job) {
	s.c.catalog.perCount = time.Duration(s.r.IntN(8)) * time.Millisecond
	if s.last == weir.NoCheckpoint {
		j.deploy(0, nil)
	} else {
		j.restore(s.last, s.of, s.acks)
	}
	s.c.heard(time.Duration(1+s.r.IntN(600)) * time.Millisecond)
}

// again cancels the job and starts it from the last checkpoint with another parallelism.
func (s *swarm) again(p int) {
	s.j.cancel()
	s.c.heard(time.Second)
	s.c.catalog.counts, s.c.catalog.sums = map[uint64]uint64{}, 0
	n := s.j.n
	s.j = s.c.newOvertakingJob(p, 1+s.r.IntN(4))
	s.j.n = n + 1
	s.deploy(s.j)
}

// round triggers some checkpoints; each is complete, or abandoned at some time.
func (s *swarm) round() {
	for range 1 + s.r.IntN(4) {
		s.next++
		o := weir.CheckpointOptions{}
		switch s.r.IntN(4) {
		case 0:
		case 1:
			o.Alignment = weir.Unaligned
		default:
			o.Timeout = time.Duration(1+s.r.IntN(30)) * time.Millisecond
		}
		s.j.triggerWith(s.next, o)
		patience := time.Duration(s.r.IntN(40)) * time.Millisecond
		if s.r.IntN(2) == 0 {
			patience = 20 * time.Second
		}
		if acks, ok := s.await(s.next, patience); ok {
			s.last, s.of, s.acks = s.next, s.j, acks
			continue
		}
		s.tell(func(a weir.AttemptID) rpc.Message {
			return rpc.NotifyCheckpointAborted{Attempt: a, Checkpoint: s.next, LatestCompleted: s.last}
		})
	}
}

func (s *swarm) tell(what func(weir.AttemptID) rpc.Message) {
	for v := range s.j.graph.Vertices {
		for i := range s.j.graph.Vertices[v].Parallelism {
			s.j.workerOf(i).say(what(s.j.attempt(v, i)))
		}
	}
}

// await returns the acknowledgements of a checkpoint, if all come in time.
func (s *swarm) await(id weir.CheckpointID, patience time.Duration) (acks []rpc.AcknowledgeCheckpoint, ok bool) {
	want := s.j.graph.Vertices[0].Parallelism + s.j.graph.Vertices[1].Parallelism
	for begun := time.Now(); time.Since(begun) <= patience; {
		for _, m := range s.c.heard(3 * time.Millisecond) {
			switch m := m.(type) {
			case rpc.AcknowledgeCheckpoint:
				if m.Checkpoint == id {
					acks = append(acks, m)
				}
			case rpc.DeclineCheckpoint:
				if m.Checkpoint == id {
					return nil, false
				}
			case rpc.TaskStateChanged:
				if m.Failure != nil {
					s.c.t.Fatalf("failed: %v", m.Failure)
				}
			}
		}
		if len(acks) == want {
			return acks, true
		}
	}
	if patience > time.Second {
		s.c.t.Errorf("checkpoint %d was not complete within %v: %d of %d", id, patience, len(acks), want)
	}
	return nil, false
}
