package debloat_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir/netstack/debloat"
)

// update is one step of a case: what goes in, and the size that is to be announced, 0 if
// none is.
type update struct {
	throughput int64
	inFlight   int
	size       int
	announce   bool
}

func run(t *testing.T, o debloat.Options, updates []update) *debloat.Calculator {
	t.Helper()
	c := debloat.New(o)
	for i, u := range updates {
		size, announce := c.Update(u.throughput, u.inFlight)
		if size != u.size || announce != u.announce {
			t.Errorf("update %d: size %d, announce=%t; want %d, %t", i+1, size, announce, u.size, u.announce)
		}
	}
	return c
}

func TestDebloat(t *testing.T) {
	t.Run("O-DBL-01_limits", func(t *testing.T) {
		o := debloat.Options{Target: time.Second, Min: 256, Max: 32768, Samples: 1}
		c := run(t, o, []update{{100_000, 10, 10_000, true}})
		if d := c.Drain(); d != time.Second {
			t.Errorf("drains in %v", d)
		}
		run(t, o, []update{
			{100_000, 10, 10_000, true},
			{100_000, 10, 10_000, false},  // equal to the last
			{1_000_000, 10, 20_000, true}, // at most doubled
			{1_000_000, 10, 32_768, true}, // the largest
		})
	})
	t.Run("O-DBL-02_average_and_threshold", func(t *testing.T) {
		o := debloat.Options{Target: 500 * time.Millisecond, Min: 100, Max: 1000, Threshold: 25, Samples: 3}
		run(t, o, []update{{800, 1, 700, true}, {800, 1, 550, false}, {800, 1, 475, true}, {800, 1, 438, false}})
	})
	t.Run("O-DBL-03_nothing_in_flight_and_minimum", func(t *testing.T) {
		o := debloat.Options{Target: time.Second, Min: 256, Max: 4096, Threshold: 25, Samples: 1}
		run(t, o, []update{{2000, 0, 2000, true}, {100, 1, 256, true}, {100, 1, 256, false}})
	})
	t.Run("O-DBL-04_throughput", func(t *testing.T) {
		now := time.Unix(100, 0)
		var m debloat.Meter
		m.Resume(now)
		m.Consumed(now, 2000)
		m.Consumed(now.Add(100*time.Millisecond), 3000)
		now = now.Add(250 * time.Millisecond)
		for range 2 { // the second time no time has passed
			if got := m.Throughput(now); got != 20_000 {
				t.Errorf("throughput %d", got)
			}
		}
		m.Consumed(now, 1000)
		now = now.Add(100 * time.Millisecond)
		m.Pause(now)
		m.Pause(now.Add(time.Second)) // it is paused already
		now = now.Add(10 * time.Second)
		m.Consumed(now, 1000)
		now = now.Add(100 * time.Millisecond)
		if got := m.Throughput(now); got != 10_000 {
			t.Errorf("throughput %d, want 2000 bytes in 200 ms", got)
		}
		m.Pause(now)
		if got := m.Throughput(now.Add(time.Minute)); got != 10_000 {
			t.Errorf("throughput %d after a pause", got)
		}
		m.Resume(now)
		if got := m.Throughput(now.Add(time.Second)); got != 0 {
			t.Errorf("throughput %d of nothing", got)
		}
	})
}

func TestSizesKeepToTheirBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(1, 1000).Draw(t, "min")
		o := debloat.Options{
			Target:    time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "target")),
			Min:       least,
			Max:       rapid.IntRange(least, 40_000).Draw(t, "max"),
			Samples:   rapid.IntRange(1, 50).Draw(t, "samples"),
			Threshold: rapid.IntRange(0, 100).Draw(t, "threshold"),
		}
		c := debloat.New(o)
		before, announced := o.Max, o.Max
		for range rapid.IntRange(1, 30).Draw(t, "updates") {
			throughput := rapid.Int64Range(0, 1<<40).Draw(t, "throughput")
			size, announce := c.Update(throughput, rapid.IntRange(0, 1<<20).Draw(t, "in flight"))
			switch {
			case size < o.Min || size > o.Max:
				t.Fatalf("size %d of %+v", size, o)
			case size > 2*before+1 && size != o.Min:
				t.Fatalf("size %d after %d", size, before)
			case announce && size == announced:
				t.Fatalf("size %d announced twice", size)
			case !announce && size != announced && (size == o.Min || size == o.Max):
				t.Fatalf("the bound %d is not announced, but %d was", size, announced)
			case c.Drain() < 0:
				t.Fatalf("drains in %v", c.Drain())
			}
			if before = size; announce {
				announced = size
			}
			if c.Announced() != announced {
				t.Fatalf("announced %d, not %d", c.Announced(), announced)
			}
		}
	})
}
