package wordcount

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/connector/file"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
)

// badStore is a store that refuses to write one blob in six, and of another one in six
// loses the answer, once it is told to begin.
type badStore struct {
	mu struct {
		sync.Mutex
		rng    *rand.Rand
		begun  bool
		faults int
	}
}

var errStore = errors.New("the store is away")

func (s *badStore) hook(when int) func(context.Context, faulty.Op, string) error {
	return func(_ context.Context, op faulty.Op, _ string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.mu.begun || op == faulty.Read || op == faulty.List || op == faulty.Stat || s.mu.rng.IntN(6) != when {
			return nil
		}
		s.mu.faults++
		return errStore
	}
}

func (s *badStore) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.begun = true
}

// copyJob writes the lines that it reads, so that it publishes all the time. Its sink has
// files of few bytes.
var copyJob = flow.Define("copy", func(g *flow.Graph, p Params) error {
	lines := flow.From(g, "lines", file.Lines(file.SourceOptions{Input: p.Input, SplitBytes: int64(p.SplitSize)}))
	slow := flow.Map(lines, "slow", func(line string) string { <-time.After(p.Sleep); return line })
	sink := file.NewSink(file.SinkOptions{Output: p.Output, PartBytes: 200}, func(b []byte, line string) []byte { return append(b, line...) })
	flow.To(flow.Rebalance(slow), "out", sink)
	return nil
})

// TestOutputOverFaults ends TaskManagers in the middle of jobs while the store fails
// checkpoints.
func TestOutputOverFaults(t *testing.T) {
	dir, all := input(t, 7, 120)
	copied := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
	slices.Sort(copied)
	for seed := range uint64(10) {
		name, want := Name, Count(all)
		if seed%5 < 3 {
			name, want = "copy", copied
		}
		t.Run(fmt.Sprint(name, " seed ", seed), func(t *testing.T) {
			t.Parallel()
			bad := new(badStore)
			bad.mu.rng = rand.New(rand.NewPCG(seed, 1))
			rng := rand.New(rand.NewPCG(seed, 2))
			var store blobstore.Store = faulty.New(mem.New(), faulty.Hook{Before: bad.hook(0), After: bad.hook(1)})
			c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{Job, copyJob}, TaskManagers: 2, Slots: 3, Store: store})
			out := filepath.Join(t.TempDir(), "out")
			reply, err := c.Gateway().Submit(t.Context(), rpc.SubmitRequest{
				Entrypoint: name, Parallelism: 1 + rng.IntN(3), Params: map[string]string{"input": dir, "output": out, "split-size": "700", "sleep": "500us"},
				Options: map[string]string{
					"execution.checkpointing.interval": "10ms", "restart-strategy.fixed-delay.delay": "1ms", "restart-strategy.fixed-delay.attempts": "1000000",
					"execution.checkpointing.unaligned.enabled": fmt.Sprint(seed%2 == 1),
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			bad.begin()
			for after, round := weir.CheckpointID(0), 0; round < 4; round++ {
				d, err := c.Await(t.Context(), reply.Job, func(d rpc.JobDetail) bool { return d.LastCheckpoint > after || d.Status.Final() })
				if err != nil {
					t.Fatal(err)
				}
				if d.Status.Final() {
					break
				}
				after = d.LastCheckpoint + weir.CheckpointID(rng.IntN(4))
				i := rng.IntN(2)
				if err := errors.Join(c.StopTaskManager(t.Context(), i), c.StartTaskManager(t.Context(), i)); err != nil {
					t.Fatal(err)
				}
			}
			d, err := c.Await(t.Context(), reply.Job, func(d rpc.JobDetail) bool { return d.Status.Final() })
			if err != nil || d.Status != rpc.JobFinished {
				t.Fatalf("%v; %s, failure %+v", err, d.Status, d.Failure)
			}
			got, err := ReadOutput(out)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d lines, want %d, or others; %v", len(got), len(want), err)
			}
			bad.mu.Lock()
			defer bad.mu.Unlock()
			t.Logf("%d restarts, %d faults of the store", d.Restarts, bad.mu.faults)
			if bad.mu.faults == 0 {
				t.Error("the store had no faults")
			}
		})
	}
}
