package metrics

import (
	"math"
	"sync/atomic"
)

// Counter is a number that only grows, for paths that every record takes. Any
// goroutine may add, but one writer is what it is made for. The zero value is ready.
type Counter struct {
	v atomic.Int64
	_ [56]byte // a cache line of its own, apart from its neighbours' writers
}

// Add adds n, which must not be negative.
func (c *Counter) Add(n int64) { c.v.Add(n) }

// Value is the sum so far.
func (c *Counter) Value() int64 { return c.v.Load() }

// Gauge is a number that is set. The zero value is ready.
type Gauge struct {
	bits atomic.Uint64
}

// Set replaces the value.
func (g *Gauge) Set(v float64) { g.bits.Store(math.Float64bits(v)) }

// Value is what was set last, or 0.
func (g *Gauge) Value() float64 { return math.Float64frombits(g.bits.Load()) }
