package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Plan is what a seed draws for a whole life.
type Plan struct {
	// The cluster.
	JobManagers, TaskManagers, Slots int
	Memory                           int64 // of each TaskManager's network buffers
	HeartbeatInterval                time.Duration
	HeartbeatTimeout                 time.Duration

	// The job, and the one that starts from its last checkpoint in the end, with other
	// parallelisms and chains.
	Job, Next JobPlan

	// Options of the job, as a client sets them.
	Options map[string]string

	// Stop is how the first job is stopped with a savepoint; nil: it is not.
	Stop *StopPlan

	// Graph is a random graph that runs instead of Job; nil: it does not.
	Graph *GraphPlan

	// Lag is how likely time passes although something could be delivered; Tick is
	// how much usually.
	Lag  float64
	Tick time.Duration
	// Burst is how many frames of a link are delivered in one step, at most.
	Burst int

	// Faults that occur, about one in Every. Life is how long the first phase lasts.
	Faults []Kind
	Every  time.Duration
	Life   time.Duration
	// Chances of one call of storage or registry to fail, and to lose its answer.
	DiskFails, DiskLoses, RegistryFails, RegistryLoses float64
	// Snipe is the chance, in a step of a critical moment, that a process is killed
	// just then (world.go).
	Snipe float64
}

// JobPlan is the shape of the job.
type JobPlan struct {
	Splits, Numbers            int // numbers per split
	Keys                       int
	Sources, Mappers, Counters int // parallelism
	Notes                      int
	Chained                    bool // the mapper with the source, the notes with the counters
	Burst                      int  // numbers that a reader emits without a pause
	Pause                      time.Duration
	Pad, BigPad, BigEvery      int // bytes of a record; of a big one; how often
	Timers                     int // how often each key's timer fires
	TimerEvery                 time.Duration
	MaxParallelism             int
	Ends                       bool // the sources end after their last number
}

func oneOf[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// Draw draws a plan.
func Draw(rng *rand.Rand) Plan {
	p := Plan{
		JobManagers: oneOf(rng, 1, 2), TaskManagers: 1 + rng.IntN(3), Slots: 1 + rng.IntN(3),
		HeartbeatInterval: oneOf(rng, 100*time.Millisecond, 500*time.Millisecond, 2*time.Second),
		Lag:               oneOf(rng, 0.05, 0.2, 0.5), Tick: oneOf(rng, time.Millisecond, 3*time.Millisecond, 10*time.Millisecond),
		Burst: oneOf(rng, 1, 4, 16), Life: time.Duration(3+rng.IntN(12)) * time.Second,
		Every: oneOf(rng, 400*time.Millisecond, time.Second, 3*time.Second), Snipe: oneOf(rng, 0, 0.01, 0.05),
		DiskFails: oneOf(rng, 0, 0, 0.02, 0.1), DiskLoses: oneOf(rng, 0, 0, 0.05),
		RegistryFails: oneOf(rng, 0, 0, 0.02, 0.1), RegistryLoses: oneOf(rng, 0, 0, 0.1),
	}
	p.HeartbeatTimeout = p.HeartbeatInterval * time.Duration(3+rng.IntN(5))
	for _, k := range kinds {
		if rng.IntN(5) < 2 {
			p.Faults = append(p.Faults, k)
		}
	}
	if rng.IntN(8) == 0 { // a calm life: nothing fails, so nothing may be left behind
		p.Faults, p.Snipe = nil, 0
		p.DiskFails, p.DiskLoses, p.RegistryFails, p.RegistryLoses = 0, 0, 0, 0
	}
	slots := p.TaskManagers * p.Slots
	p.Job = drawJob(rng, slots, p.Life)
	p.Options, p.Memory = drawOptions(rng, p.Job)
	p.Next = drawNext(rng, p.Job, slots)
	p.Memory = max(p.Memory, leastMemory(p.Next, p.Options))
	return p
}

// Calm says whether nothing goes wrong in this life.
func (p Plan) Calm() bool {
	return len(p.Faults) == 0 && p.Snipe == 0 && p.DiskFails+p.DiskLoses+p.RegistryFails+p.RegistryLoses == 0
}

func drawJob(rng *rand.Rand, slots int, life time.Duration) JobPlan {
	width := func() int { return 1 + rng.IntN(min(slots, 3)) }
	j := JobPlan{
		Splits: 1 + rng.IntN(5), Numbers: 100 + rng.IntN(300), Keys: oneOf(rng, 1, 5, 40),
		Sources: width(), Mappers: width(), Counters: width(), Notes: width(),
		Chained: rng.IntN(2) == 0, Burst: oneOf(rng, 1, 10, 60), Pad: oneOf(rng, 0, 30, 900),
		BigPad: oneOf(rng, 0, 20_000, 70_000), BigEvery: 20 + rng.IntN(50),
		Timers: 1 + rng.IntN(4), TimerEvery: oneOf(rng, 50*time.Millisecond, time.Second),
		MaxParallelism: oneOf(rng, 4, 7, 128),
	}
	// The numbers last about two thirds of the first phase, were there no faults.
	bursts := max(1, j.Numbers*j.Splits/(min(j.Sources, j.Splits)*j.Burst))
	j.Pause = max(time.Millisecond, life*2/3/time.Duration(bursts))
	return j
}

// drawNext is the same job in another shape, which has some more to do.
func drawNext(rng *rand.Rand, j JobPlan, slots int) JobPlan {
	width := func() int { return 1 + rng.IntN(min(slots, 3)) }
	j.Sources, j.Mappers, j.Counters, j.Notes = width(), width(), width(), width()
	j.Chained = rng.IntN(2) == 0
	j.Numbers += 50
	j.Pause = min(j.Pause, 100*time.Millisecond)
	j.Ends = rng.IntN(2) == 0
	return j
}

// drawOptions draws the job's options, and how much memory it then needs.
func drawOptions(rng *rand.Rand, j JobPlan) (map[string]string, int64) {
	exclusive, floating := oneOf(rng, 1, 2), oneOf(rng, 1, 8)
	options := map[string]string{
		"execution.checkpointing.interval":                          oneOf(rng, "20ms", "100ms", "400ms"),
		"execution.checkpointing.min-pause":                         oneOf(rng, "0s", "50ms"),
		"execution.checkpointing.timeout":                           oneOf(rng, "500ms", "3s", "10s"),
		"execution.checkpointing.data-inline-threshold":             oneOf(rng, "0", "100", "20kb"),
		"execution.checkpointing.num-retained":                      oneOf(rng, "1", "2", "3"),
		"execution.buffer-timeout.interval":                         oneOf(rng, "0s", "5ms", "100ms"),
		"restart-strategy.type":                                     "fixed-delay",
		"restart-strategy.fixed-delay.delay":                        oneOf(rng, "10ms", "300ms", "2s"),
		"pipeline.operator-chaining.enabled":                        fmt.Sprint(rng.IntN(4) > 0),
		"pipeline.max-parallelism":                                  fmt.Sprint(j.MaxParallelism),
		"taskmanager.network.memory.buffers-per-channel":            fmt.Sprint(exclusive),
		"taskmanager.network.memory.floating-buffers-per-gate":      fmt.Sprint(floating),
		"taskmanager.network.memory.max-buffers-per-channel":        fmt.Sprint(oneOf(rng, 1, 2, 10)),
		"taskmanager.network.memory.max-overdraft-buffers-per-gate": fmt.Sprint(oneOf(rng, 0, 1, 5)),
	}
	memory := leastMemory(j, options)
	if rng.IntN(2) == 0 {
		memory *= 4
	}
	return options, memory
}

// leastMemory is what a TaskManager needs if every task lands on it: outputs one buffer a
// subpartition and one more, gates their exclusive ones and one floating (DECISIONS
// 23). Half of the lives have just that.
func leastMemory(j JobPlan, options map[string]string) int64 {
	exclusive := 1
	if options["taskmanager.network.memory.buffers-per-channel"] == "2" {
		exclusive = 2
	}
	stages := []int{j.Sources, j.Mappers, j.Counters, j.Notes}
	least := 0
	for i, width := range stages {
		if i+1 < len(stages) {
			least += width * (stages[i+1] + 1)
		}
		if i > 0 {
			least += width * (stages[i-1]*exclusive + 1)
		}
	}
	return int64(least) * 32768
}
