package pairs

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand"
	randv2 "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func fixed(perUnit ...time.Duration) func() Sample {
	i := 0
	return func() Sample {
		d := perUnit[i%len(perUnit)]
		i++
		return Sample{Units: 10, Cost: 10 * d}
	}
}

func TestRunTakesTheMedianOfRatios(t *testing.T) {
	t.Parallel()
	r := Run("x", fixed(20, 20, 20, 900), fixed(10), 1)
	if r.Pairs != LeastPairs || r.Cost != 2 || r.CostLow != 2 || r.SubjectNanos != 20 || r.BareNanos != 10 {
		t.Fatalf("got %+v", r)
	}
}

func TestBarsAreJudgedByTheWorseEnd(t *testing.T) {
	t.Parallel()
	r := Result{Cost: 1.9, CostLow: 1.5, CostHigh: 2.5}
	if !r.CostAtMost(2).Failed() || r.CostAtMost(2.5).Failed() {
		t.Error("a cost bar must be judged by the high end")
	}
	if !r.SpeedAtLeast(0.5).Failed() || r.SpeedAtLeast(0.4).Failed() {
		t.Error("a speed bar must be judged by the low end")
	}
	if r.Failed() {
		t.Error("a result without a bar cannot fail")
	}
}

func TestMedians(t *testing.T) {
	t.Parallel()
	of := func(costs ...time.Duration) (all []Sample) {
		for _, c := range costs {
			all = append(all, Sample{Units: 1, Cost: c})
		}
		return all
	}
	s := of(60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 900, 900)
	b := of(20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20)
	if r := Medians("x", s, b); r.Cost != 3 || r.CostLow != 3 || r.CostHigh < 3 || r.Pairs != 11 || r.SubjectNanos != 60 || r.BareNanos != 20 {
		t.Errorf("%+v", r)
	}
	defer func() {
		if recover() == nil {
			t.Error("too few samples are accepted")
		}
	}()
	Medians("x", s, b[1:])
}

// The interval of medians must hold the true ratio in about 95 % of experiments.
func TestIntervalOfMediansCovers(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	again := randv2.New(randv2.NewPCG(1, 2))
	const rounds, n = 400, 31
	covered := 0
	for range rounds {
		draw := func() (all []float64) {
			for range n {
				all = append(all, math.Exp(rng.NormFloat64()))
			}
			slices.Sort(all)
			return all
		}
		if low, high := bootstrap(again, draw(), draw(), 400); low <= 1 && 1 <= high {
			covered++
		}
	}
	if share := float64(covered) / rounds; share < 0.93 {
		t.Fatalf("covered %.3f", share)
	}
}

func TestABandIsJudgedByBothEnds(t *testing.T) {
	t.Parallel()
	r := Result{Cost: 1, CostLow: 0.9, CostHigh: 1.1}
	if r.Within(0.8, 1.2).Failed() || !r.Within(0.95, 1.2).Failed() || !r.Within(0.8, 1.05).Failed() {
		t.Error("both ends must lie in the band")
	}
}

func TestRunUntilTheIntervalIsNarrow(t *testing.T) {
	t.Parallel()
	settles := append(slices.Repeat([]time.Duration{20, 40}, 8), slices.Repeat([]time.Duration{30}, 100)...)
	for _, c := range []struct {
		subject         func() Sample
		atLeast, atMost int
	}{
		{fixed(20), 15, 15},
		{fixed(20, 40), 60, 60},
		{fixed(settles...), 16, 59},
	} {
		r := RunUntil("x", c.subject, fixed(10), 15, 60, 0.1)
		if r.Pairs < c.atLeast || r.Pairs > c.atMost {
			t.Errorf("%d pairs, want %d to %d", r.Pairs, c.atLeast, c.atMost)
		}
	}
}

func TestCompareCountsTheAllocationsOfBoth(t *testing.T) {
	t.Parallel()
	var s, b []Sample
	for range LeastPairs {
		s = append(s, Sample{Units: 10, Cost: 30, Allocs: 5})
		b = append(b, Sample{Units: 20, Cost: 20, Allocs: 2})
	}
	if r := Compare("x", s, b); r.Cost != 3 || r.AllocsPerUnit != 0.5 || r.BareAllocsPerUnit != 0.1 {
		t.Errorf("%+v", r)
	}
	defer func() {
		if recover() == nil {
			t.Error("too few samples are accepted")
		}
	}()
	Compare("x", s[1:], b[1:])
}

func TestMedianRanks(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{11: 1, 15: 3, 21: 5, 101: 40} {
		if low, high := medianRanks(n); low != want || high != n-1-want {
			t.Errorf("n=%d: got %d, %d, want low %d", n, low, high, want)
		}
	}
}

// The interval must hold the true median in at least 95 % of experiments.
func TestIntervalCovers(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	const rounds, n = 20000, 11
	low, high := medianRanks(n)
	covered := 0
	for range rounds {
		v := make([]float64, n)
		for i := range v {
			v[i] = math.Exp(rng.NormFloat64()) // median 1, skewed
		}
		slices.Sort(v)
		if v[low] <= 1 && 1 <= v[high] {
			covered++
		}
	}
	if share := float64(covered) / rounds; share < 0.95 {
		t.Fatalf("covered %.3f", share)
	}
}

func TestMainExitCodes(t *testing.T) {
	t.Parallel()
	good := Case{"good", func(n int) Result { return Run("good", fixed(10), fixed(10), n).CostAtMost(1.1) }}
	bad := Case{"bad", func(n int) Result { return Run("bad", fixed(30), fixed(10), n).CostAtMost(1.1) }}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 1, "MISSED"},
		{[]string{"-run", "^good$"}, 0, "met"},
		{[]string{"-o", "yaml"}, 2, ""},
		{[]string{"-run", "("}, 2, ""},
	} {
		var out, errs bytes.Buffer
		if code := Main(c.args, &out, &errs, good, bad); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: code %d, output %q, errors %q", c.args, code, out.String(), errs.String())
		}
	}
	var out bytes.Buffer
	Main([]string{"-o", "json", "-run", "bad"}, &out, &out, good, bad)
	var r Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Name != "bad" || r.Met {
		t.Errorf("json %q: %+v, %v", out.String(), r, err)
	}
}

func TestWallAndCPUMeasure(t *testing.T) {
	t.Parallel()
	spin := func() {
		for start := ProcessCPU(); ProcessCPU()-start < 2*time.Millisecond; {
		}
	}
	if s := Wall(1, spin); s.Cost <= 0 {
		t.Errorf("wall: %+v", s)
	}
	if s := CPU(1, spin); s.Cost < 2*time.Millisecond {
		t.Errorf("cpu: %+v", s)
	}
}
