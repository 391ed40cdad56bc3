package sim_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weirflow/weir/sim"
)

// several lets three checkpoints be pending at a time, where barriers do not overtake.
func several(p *sim.Plan) {
	const key = "execution.checkpointing.max-concurrent-checkpoints"
	p.Options[key] = "3"
	if p.Graph == nil {
		return
	}
	for i := range p.Graph.Stages {
		if s := &p.Graph.Stages[i]; s.Mode == sim.Aligned || s.Mode == sim.AtLeastOnce {
			s.Options[key] = "3"
		}
	}
}

// TestSeveralCheckpointsAtATime lives seeds once more with several checkpoints pending.
// What tasks are told only grows, and each complete checkpoint is exact.
func TestSeveralCheckpointsAtATime(t *testing.T) {
	n, first := max(number(t, "WEIR_SEEDS", suite)/4, 8), uint64(number(t, "WEIR_FIRST", 1))
	var mu sync.Mutex
	links := 0
	t.Run("lives", func(t *testing.T) {
		for _, seed := range seeds(first, n) {
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				t.Parallel()
				r := live(t, seed, several)
				mu.Lock()
				defer mu.Unlock()
				links += r.Links
			})
		}
	})
	t.Logf("%d lives, %d checkpoints read and found exact", n, links)
	if links < 10*n && !t.Failed() {
		t.Errorf("%d checkpoints in %d lives", links, n)
	}
}
