package sim_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/sim"
)

// starvingSuite is how many random graphs a plain go test runs with the smallest buffers;
// WEIR_SEEDS says otherwise.
const starvingSuite = 40

// TestSmallestBuffersStarveNoCheckpoint runs random graphs, without faults and with
// records that are larger than all buffers there are, and demands that records move while
// a checkpoint is pending: nobody waits for what comes only when the checkpoint is over.
func TestSmallestBuffersStarveNoCheckpoint(t *testing.T) {
	n, first := number(t, "WEIR_SEEDS", starvingSuite), uint64(number(t, "WEIR_FIRST", 1))
	var mu sync.Mutex
	links := 0
	t.Run("lives", func(t *testing.T) {
		for _, seed := range graphs(first, n) {
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				t.Parallel()
				r := live(t, seed, func(p *sim.Plan) { starve(p, seed) })
				mu.Lock()
				defer mu.Unlock()
				links += r.Links
			})
		}
	})
	t.Logf("%d checkpoints were complete", links)
	if links == 0 && !t.Failed() {
		t.Error("no checkpoint was complete")
	}
}

// graphs are so many seeds of random graphs, after those that starved once: 163 where ways
// fork and join, 250 in the middle of a record, 236 by data that a barrier was moved past.
func graphs(first uint64, n int) []uint64 {
	var list []uint64
	if first == 1 {
		list = []uint64{163, 236, 250}
	}
	for seed := first; n > 0; seed++ {
		if sim.OfGraphs(seed) {
			list, n = append(list, seed), n-1
		}
	}
	return list
}

// starve gives a life the smallest buffers and large records.
func starve(p *sim.Plan, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 9))
	p.Faults, p.Snipe = nil, 0
	p.DiskFails, p.DiskLoses, p.RegistryFails, p.RegistryLoses = 0, 0, 0, 0
	large, sleep := 20_000+r.Int64N(130_000), time.Duration(1+r.IntN(20))*time.Millisecond
	all := r.IntN(2) == 0 // are large
	for i := range p.Graph.Stages {
		s := &p.Graph.Stages[i]
		s.Params.Large, s.Params.Sleep, s.Params.Rate = flow.Size(large), sleep, 0
		if all {
			s.Params.Size, s.Params.Records = flow.Size(large), 60
		}
		o := s.Options
		o["execution.checkpointing.timeout"] = "10s"
		o["execution.checkpointing.interval"] = "200ms"
		o["execution.checkpointing.unaligned.channel-state-memory"] = "64mb"
		o["taskmanager.network.memory.max-overdraft-buffers-per-gate"] = "0"
		o["taskmanager.network.memory.max-buffers-per-channel"] = fmt.Sprint(1 + r.IntN(2))
		if r.IntN(2) == 0 {
			o["taskmanager.network.memory.buffer-debloat.enabled"] = "true"
			o["taskmanager.network.memory.buffer-debloat.period"] = "20ms"
			o["taskmanager.network.memory.buffer-debloat.target"] = "1ms"
		}
	}
}
