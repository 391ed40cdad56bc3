package input

import "time"

// history remembers how a number that only grows grew over time, precisely for the
// recent past and less so for the distant one: samples that are older may lie further
// apart, about a fifth of their age. Between samples it is taken to have grown
// evenly.
type history struct {
	samples []sample
}

type sample struct {
	at    time.Duration // since the meter's start
	value int64
}

const (
	historySize   = 160
	historySpread = 5 // samples lie at most age/historySpread apart after thinning
)

// add notes the value at a time, not before that of the last call.
func (h *history) add(at time.Duration, value int64) {
	if n := len(h.samples); n > 0 && h.samples[n-1].at == at {
		h.samples[n-1].value = value
		return
	}
	if len(h.samples) == historySize {
		h.thin(at)
	}
	if h.samples == nil {
		h.samples = make([]sample, 0, historySize)
	}
	h.samples = append(h.samples, sample{at, value})
}

// thin drops samples that lie closer together than their age warrants. The newest and
// the oldest stay.
func (h *history) thin(now time.Duration) {
	last := len(h.samples) - 1
	kept := last // lowest index kept so far; samples are moved towards the end
	write := last
	for i := last - 1; i >= 0; i-- {
		next := h.samples[kept].at
		// Without the sample below it, the gap from the last kept one would be too wide.
		tooWide := i == 0 || next-h.samples[i-1].at > (now-next)/historySpread+time.Millisecond
		if tooWide {
			write--
			h.samples[write] = h.samples[i]
			kept = write
		}
	}
	n := copy(h.samples, h.samples[write:])
	h.samples = h.samples[:n]
	if n == historySize {
		// Ages span more than the samples can: forget the oldest.
		copy(h.samples, h.samples[1:])
		h.samples = h.samples[:n-1]
	}
}

// value returns what the number was at a time.
func (h *history) value(at time.Duration) int64 {
	n := len(h.samples)
	if n == 0 {
		return 0
	}
	i := n - 1
	for i >= 0 && h.samples[i].at > at {
		i--
	}
	if i < 0 {
		return h.samples[0].value
	}
	if i == n-1 {
		return h.samples[i].value
	}
	a, b := h.samples[i], h.samples[i+1]
	return a.value + int64(float64(b.value-a.value)*float64(at-a.at)/float64(b.at-a.at))
}
