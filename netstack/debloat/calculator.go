package debloat

import (
	"math"
	"time"

	"github.com/weirflow/weir/internal/assert"
)

// Options of a Calculator.
type Options struct {
	Target    time.Duration // wanted time to consume what is in flight
	Min, Max  int           // bytes of a segment; the first size is Max
	Samples   int           // of the moving average, at least 1; 1: no average
	Threshold int           // least change that is announced, in percent of the size announced last
}

// maxDrain is what Drain says at most.
const maxDrain = 1000 * time.Hour

// Calculator finds the size of the segments of one gate.
type Calculator struct {
	options   Options
	alpha     float64
	size      float64 // the average
	announced int
	drain     time.Duration
}

// New makes a Calculator. Producers start with segments of Max bytes.
func New(o Options) *Calculator {
	assert.That(o.Min >= 1 && o.Max >= o.Min && o.Samples >= 1 && o.Threshold >= 0, "options %+v", o)
	return &Calculator{options: o, alpha: 2 / float64(o.Samples+1), size: float64(o.Max), announced: o.Max}
}

// Update takes the throughput in bytes per second and the number of segments in flight.
// It returns the size, and whether it is to be announced to the producers.
func (c *Calculator) Update(throughput int64, inFlight int) (size int, announce bool) {
	desired := math.Floor(float64(throughput) * c.options.Target.Seconds())
	instant := min(desired/float64(max(1, inFlight)), 2*c.size)
	c.size += c.alpha * (instant - c.size)
	c.size = min(max(c.size, float64(c.options.Min)), float64(c.options.Max))
	size = int(math.Round(c.size))
	seconds := float64(size) * float64(inFlight) / float64(max(1, throughput))
	c.drain = time.Duration(min(seconds, maxDrain.Seconds()) * float64(time.Second))
	if announce = c.worthwhile(size); announce {
		c.announced = size
	}
	return size, announce
}

// worthwhile says whether a size differs enough from the one announced last. The bounds
// always do.
func (c *Calculator) worthwhile(size int) bool {
	switch {
	case size == c.announced:
		return false
	case size <= c.options.Min || size >= c.options.Max:
		return true
	}
	change := size - c.announced
	return max(change, -change) >= c.announced*c.options.Threshold/100
}

// Announced is the size announced last.
func (c *Calculator) Announced() int { return c.announced }

// Drain estimates how long what was in flight at the last Update takes to be consumed.
func (c *Calculator) Drain() time.Duration { return c.drain }
