package pairs

import (
	"fmt"
	"math"
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
	var s, b, ratios []float64
	for i, x := range subject {
		y := bare[i]
		s = append(s, x.PerUnit())
		b = append(b, y.PerUnit())
		ratios = append(ratios, x.PerUnit()/y.PerUnit())
	}
	slices.Sort(s)
	slices.Sort(b)
	slices.Sort(ratios)
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
