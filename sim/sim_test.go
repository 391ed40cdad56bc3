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

// What a seed determines: its plan, and the answer to each question that a step of the world
// can be (question.go). In two lives of a seed the tasks may race for what they do in one
// step, so that the lives part; but never in that one question gets two answers, whatever
// the scheduler does. So the first step in which two lives part is one that was asked
// something else.
func TestASeedAnswersAQuestionAlways(t *testing.T) {
	for _, seed := range []uint64{2, 4, 7, 9, 1, 3, 5, 8} { // two of random graphs of each kind behind the counting jobs
		first := live(t, seed, short)
		second := live(t, seed, short)
		if a, b := planText(first.Plan), planText(second.Plan); a != b {
			t.Errorf("seed %d: two plans:\n%s\n%s", seed, a, b)
		}
		answers := make(map[[32]byte]string)
		for i, a := range first.Asked {
			if _, twice := answers[a.Key]; twice {
				t.Fatalf("seed %d: step %d asks what was asked before", seed, i)
			}
			answers[a.Key] = a.Answer
		}
		same, together := 0, 0
		for i, a := range second.Asked {
			answer, asked := answers[a.Key]
			if !asked {
				continue
			}
			if same++; together == i {
				together++
			}
			if answer != a.Answer {
				t.Errorf("seed %d, step %d: the same question was answered with %q and %q", seed, i, answer, a.Answer)
			}
		}
		if together == 0 {
			t.Errorf("seed %d: not even the first question is the same", seed)
		}
		t.Logf("seed %d: of %d and %d steps %d asked the same, the first %d in a row", seed, len(first.Asked), len(second.Asked), same, together)
	}
}

// planText is what was drawn of a plan; a life keeps notes in it, too.
func planText(p sim.Plan) string {
	var stages []sim.Stage
	if p.Graph != nil {
		stages, p.Graph = p.Graph.Stages, nil
	}
	var stop sim.StopPlan
	if p.Stop != nil {
		stop, p.Stop = *p.Stop, nil
	}
	return fmt.Sprintf("%+v %+v %+v", p, stages, stop)
}

// short makes lives short.
func short(p *sim.Plan) { p.Life = min(p.Life, 4*time.Second) }
