package sim_test

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
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
	links, steps, simulated := 0, 0, time.Duration(0)
	t.Run("lives", func(t *testing.T) {
		for _, seed := range append(kept(t), seeds(first, n)...) {
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				t.Parallel()
				r := live(t, seed, nil)
				mu.Lock()
				defer mu.Unlock()
				for m, k := range r.Marks {
					marks[m] += k
				}
				links, steps, simulated = links+r.Links, steps+r.Steps, simulated+r.Age
			})
		}
	})
	t.Logf("%d lives: %d steps, %s simulated, %d checkpoints read and found exact", n, steps, simulated, links)
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
