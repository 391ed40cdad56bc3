package sim_test

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/sim"
)

// suite is how many seeds a plain go test lives; WEIR_SEEDS says otherwise.
const suite = 20

// wholeSuite is how many seeds are enough for each kind of fault to have occurred.
const wholeSuite = 100

func number(t *testing.T, variable string, absent int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return absent
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is not a number", variable, text)
	}
	return n
}

// oneByOne keeps lives from running beside each other, so that the first that fails is
// the last.
var oneByOne = false

// live lives one life in a bubble of its own.
func live(t *testing.T, seed uint64, change func(*sim.Plan)) (r sim.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = sim.Live(t, seed, change) })
	return r
}

func TestSeeds(t *testing.T) {
	if seed := number(t, "WEIR_SEED", -1); seed >= 0 {
		r := live(t, uint64(seed), nil)
		for _, line := range r.Trace {
			t.Log(line)
		}
		t.Logf("seed %d: %d steps, %s simulated, %d checkpoints checked, %v", seed, r.Steps, r.Age, r.Links, r.Marks)
		return
	}
	n, first := number(t, "WEIR_SEEDS", suite), uint64(number(t, "WEIR_FIRST", 1))
	marks := make(sim.Marks)
	var mu sync.Mutex
	var links, steps int
	var simulated, rescue time.Duration
	t.Run("lives", func(t *testing.T) {
		list := seeds(first, n)
		if first == 1 {
			list = append(kept(t), list...)
		}
		for _, seed := range list {
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				if !oneByOne {
					t.Parallel()
				}
				r := live(t, seed, nil)
				mu.Lock()
				defer mu.Unlock()
				for m, k := range r.Marks {
					marks[m] += k
				}
				links, steps, simulated, rescue = links+r.Links, steps+r.Steps, simulated+r.Age, max(rescue, r.Rescue)
			})
		}
	})
	t.Logf("%d lives: %d steps, %s simulated, %d checkpoints read and found exact, at most %s from the last fault to the end", n, steps, simulated, links, rescue)
	t.Logf("marks: %v", marks)
	if t.Failed() {
		return
	}
	var needed []string
	if n >= suite {
		needed = []string{sim.MarkRestored, sim.MarkKillPending, sim.MarkKillLinked}
	}
	if n >= wholeSuite {
		needed = sim.AllMarks()
	}
	for _, m := range needed {
		if marks[m] == 0 {
			t.Errorf("no life of this suite shows: %s", m)
		}
	}
}

// seeds are so many seeds from the first.
func seeds(first uint64, n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = first + uint64(i)
	}
	return list
}

// kept are the seeds that have failed once, one a line, with a word about why.
func kept(t *testing.T) []uint64 {
	t.Helper()
	f, err := os.Open("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []uint64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		first, _, _ := strings.Cut(lines.Text(), " ")
		if first == "" || first == "#" {
			continue
		}
		seed, err := strconv.ParseUint(first, 10, 64)
		if err != nil {
			t.Fatalf("testdata/seeds: %v", err)
		}
		list = append(list, seed)
	}
	return list
}

// One seed, one trace: what a failing seed printed can be seen again. Two tasks that
// are awake in the same moment may still be heard in either order, so what is compared
// is when which link or call was chosen, and not whose message it was. And a machine
// that is busy may take the processor away in the middle of a step, so a seed has a few
// tries to show one trace twice.
func TestSeedRepeatsItsTrace(t *testing.T) {
	small := func(p *sim.Plan) {
		p.JobManagers, p.TaskManagers, p.Slots = 1, 1, 1
		for _, j := range []*sim.JobPlan{&p.Job, &p.Next} {
			j.Sources, j.Mappers, j.Counters, j.Notes = 1, 1, 1, 1
		}
		p.Faults, p.Snipe = []sim.Kind{sim.KillTaskManager, sim.Stall}, 0
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that nobody races for a lock
	const tries = 6
	for _, seed := range []uint64{2, 4, 7, 9} { // of no graphs, which need more than one slot
		var traces [][]string
		same := false
		for len(traces) < tries && !same {
			cryptotest.SetGlobalRandom(t, seed)
			var trace []string
			for _, line := range live(t, seed, small).Trace {
				trace = append(trace, strings.Join(strings.Fields(line)[:3], " "))
			}
			same = slices.ContainsFunc(traces, func(other []string) bool { return slices.Equal(other, trace) })
			traces = append(traces, trace)
		}
		if !same {
			t.Errorf("seed %d: %d different traces; the first two part at\n%s", seed, tries, difference(traces[0], traces[1]))
		}
	}
}

// difference is where two traces part.
func difference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\n" + b[i]
		}
	}
	return "the end of one"
}
