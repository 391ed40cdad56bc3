package pairs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// LeastPairs is the number of pairs below which no result is given.
const LeastPairs = 11

// Sample is one execution of a subject or of a bare loop.
type Sample struct {
	Units  float64       // work done: records, bytes, snapshots
	Cost   time.Duration // what it took, on the wall clock or of CPU
	Allocs uint64        // heap allocations meanwhile, of the whole process
}

// PerUnit is the cost of one unit in nanoseconds.
func (s Sample) PerUnit() float64 { return float64(s.Cost.Nanoseconds()) / s.Units }

// Wall runs work once and samples the wall clock.
func Wall(units float64, work func()) Sample {
	allocs := mallocs()
	start := time.Now()
	work()
	cost := time.Since(start)
	return Sample{Units: units, Cost: cost, Allocs: mallocs() - allocs}
}

// CPU runs work once and samples the CPU time, user and system, of the whole
// process. Garbage that work leaves is paid when it is collected: call
// runtime.GC inside work if that matters.
func CPU(units float64, work func()) Sample {
	allocs := mallocs()
	start := ProcessCPU()
	work()
	cost := ProcessCPU() - start
	return Sample{Units: units, Cost: cost, Allocs: mallocs() - allocs}
}

// ProcessCPU is the CPU time that this process has used so far.
func ProcessCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Run measures subject and bare in turn and compares them. subject and bare do
// their set-up outside of the sample that they return.
func Run(name string, subject, bare func() Sample, minPairs int) Result {
	n := max(minPairs, LeastPairs)
	return RunUntil(name, subject, bare, n, n, math.Inf(1))
}

// RunUntil is Run that goes on until the interval of the ratio is narrower than width,
// or there are maxPairs pairs.
func RunUntil(name string, subject, bare func() Sample, minPairs, maxPairs int, width float64) Result {
	subject()
	bare()
	var s, b []Sample
	for {
		if len(s)%2 == 0 {
			s = append(s, subject())
			b = append(b, bare())
		} else {
			b = append(b, bare())
			s = append(s, subject())
		}
		if n := len(s); n < max(minPairs, LeastPairs) {
			continue
		}
		r := Compare(name, s, b)
		if r.CostHigh-r.CostLow < width || len(s) >= maxPairs {
			return r
		}
	}
}

// Compare compares samples of the subject with as many bare ones, at least eleven, each
// with the one of the same number.
func Compare(name string, subject, bare []Sample) Result {
	n := len(subject)
	if n < LeastPairs || n != len(bare) {
		panic(fmt.Sprintf("%s: %d samples and %d bare ones, want at least %d of each", name, n, len(bare), LeastPairs))
	}
	var ratios []float64
	for i, x := range subject {
		ratios = append(ratios, x.PerUnit()/bare[i].PerUnit())
	}
	slices.Sort(ratios)
	s, b := perUnit(subject), perUnit(bare)
	low, high := medianRanks(n)
	return Result{
		Name:              name,
		Pairs:             n,
		Cost:              median(ratios),
		CostLow:           ratios[low],
		CostHigh:          ratios[high],
		SubjectNanos:      median(s),
		BareNanos:         median(b),
		AllocsPerUnit:     allocsPerUnit(subject),
		BareAllocsPerUnit: allocsPerUnit(bare),
	}
}

// resamples is how often Medians draws the samples anew.
const resamples = 4000

// Medians compares samples of the subject with bare ones that do not belong to each other
// in pairs, at least eleven of each: the ratio is that of their medians. The interval is
// that of the percentile bootstrap: the ratio of samples that are drawn anew from both, with
// replacement, lies in it with probability 0.95. The same samples have the same interval.
func Medians(name string, subject, bare []Sample) Result {
	if len(subject) < LeastPairs || len(bare) < LeastPairs {
		panic(fmt.Sprintf("%s: %d samples and %d bare ones, want at least %d of each", name, len(subject), len(bare), LeastPairs))
	}
	s, b := perUnit(subject), perUnit(bare)
	low, high := bootstrap(rand.New(rand.NewPCG(1, 2)), s, b, resamples)
	return Result{
		Name:              name,
		Pairs:             min(len(s), len(b)),
		Cost:              median(s) / median(b),
		CostLow:           low,
		CostHigh:          high,
		SubjectNanos:      median(s),
		BareNanos:         median(b),
		AllocsPerUnit:     allocsPerUnit(subject),
		BareAllocsPerUnit: allocsPerUnit(bare),
	}
}

// bootstrap returns the bounds of the ratio of medians of sorted samples.
func bootstrap(r *rand.Rand, s, b []float64, resamples int) (low, high float64) {
	drawn := func(from []float64) float64 {
		again := make([]float64, len(from))
		for i := range again {
			again[i] = from[r.IntN(len(from))]
		}
		slices.Sort(again)
		return median(again)
	}
	ratios := make([]float64, resamples)
	for i := range ratios {
		ratios[i] = drawn(s) / drawn(b)
	}
	slices.Sort(ratios)
	return ratios[resamples*25/1000], ratios[resamples-1-resamples*25/1000]
}

// perUnit returns the costs, sorted.
func perUnit(samples []Sample) (v []float64) {
	for _, x := range samples {
		v = append(v, x.PerUnit())
	}
	slices.Sort(v)
	return v
}

func allocsPerUnit(samples []Sample) float64 {
	var allocs, units float64
	for _, x := range samples {
		allocs += float64(x.Allocs)
		units += x.Units
	}
	return allocs / units
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// median of sorted numbers.
func median(v []float64) float64 {
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

// medianRanks returns the indices into n sorted values between which the median
// of the distribution lies with probability of at least 0.95: the narrowest
// symmetric pair whose binomial tails hold at most 0.025 each.
func medianRanks(n int) (low, high int) {
	term := math.Pow(0.5, float64(n)) // P(exactly k of n below the median), k = 0
	tail := term
	for k := 0; tail <= 0.025; k++ {
		low = k
		term *= float64(n-k) / float64(k+1)
		tail += term
	}
	return low, n - 1 - low
}
