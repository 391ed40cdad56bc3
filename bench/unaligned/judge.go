package main

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/bench/pairs"
)

// ours is what the cluster takes for a checkpoint beyond what nobody could save: its
// duration, less the rest of the record that was being processed, less a bare write and a
// bare transaction. It is compared with the row without back pressure.
func (p *phase) ours(name, of string) pairs.Result {
	r := pairs.Medians(name, p.spent(p.row(of)), p.spent(p.row("free")))
	r.Note = fmt.Sprintf("duration %v, of which rest of the record %v, bare write %v, bare transaction %v (medians); without back pressure %v",
		round(p.row(of).median(func(s sample) time.Duration { return s.duration })),
		round(p.row(of).median(func(s sample) time.Duration { return s.rest })),
		round(median(p.row(of).writes())), round(median(p.change)),
		round(p.row("free").median(func(s sample) time.Duration { return s.duration })))
	return r
}

func (p *phase) spent(r *row) (all []pairs.Sample) {
	bare := median(r.writes()) + median(p.change)
	for _, s := range r.samples {
		all = append(all, pairs.Sample{Units: 1, Cost: s.duration - s.rest - bare})
	}
	return all
}

// size compares what was captured with what the records prove to have been in flight.
func (p *phase) size(name, of string) pairs.Result {
	var captured, proven []pairs.Sample
	for _, s := range p.row(of).samples {
		captured = append(captured, pairs.Sample{Units: 1, Cost: time.Duration(s.inFlight.Captured)})
		proven = append(proven, pairs.Sample{Units: 1, Cost: time.Duration(s.inFlight.Bytes)})
	}
	r := pairs.Compare(name, captured, proven)
	r.Note = "bytes, not ns"
	return r
}

// least is how many of six checkpoints must switch.
const least = 4.0 / 6

// switched says how many checkpoints with a timeout switched; those without it must have
// taken longer than that, each.
func (p *phase) switched(name string) pairs.Result {
	r := pairs.Result{Name: name, Pairs: len(p.row("timeout").samples), Bar: "4 of 6 switched"}
	for _, s := range p.row("timeout").samples {
		if s.unaligned > 0 {
			r.Cost += 1 / float64(r.Pairs)
		}
	}
	r.CostLow, r.CostHigh = r.Cost, r.Cost
	shortest := time.Hour
	for _, s := range p.row("aligned").samples {
		shortest = min(shortest, s.duration)
	}
	n := len(p.row("aligned").samples)
	r.Met = r.Pairs >= 6 && r.Cost > least-1e-9 && n >= 6 && shortest > alignedTimeout
	r.Note = fmt.Sprintf("cost is the share that switched; without a timeout %d checkpoints took %v and more", n, round(shortest))
	return r
}

// late compares what checkpoints took after their timeout with unaligned ones.
func (p *phase) late(name string) pairs.Result {
	var after, unaligned []pairs.Sample
	for _, s := range p.row("timeout").samples {
		after = append(after, pairs.Sample{Units: 1, Cost: s.duration - alignedTimeout})
	}
	for _, s := range p.row("unaligned-5ms").samples {
		unaligned = append(unaligned, pairs.Sample{Units: 1, Cost: s.duration})
	}
	return pairs.Medians(name, after, unaligned)
}

// lastSync compares the time from the trigger to the end of the last synchronous part
// with ten times the queue to that with the usual one.
func (p *phase) lastSync(name string) pairs.Result {
	all := func(r *row) (all []pairs.Sample) {
		for _, s := range r.samples {
			all = append(all, pairs.Sample{Units: 1, Cost: s.lastSync})
		}
		return all
	}
	r := pairs.Medians(name, all(p.row("tenfold")), all(p.row("once")))
	size := func(s sample) time.Duration { return time.Duration(s.inFlight.Captured) }
	more, usual := p.row("tenfold").median(size), p.row("once").median(size)
	r.Note = fmt.Sprintf("in flight %.1f MB, which is %.1f times the usual (medians)", float64(more)/1e6, float64(more)/float64(usual))
	return r
}

// async compares the time from there to the last acknowledgement with bare writes of as
// many bytes, each checkpoint with the bare write that was nearest in time.
func (p *phase) async(name string) pairs.Result {
	var s, b []pairs.Sample
	r := p.row("tenfold")
	for _, x := range r.samples {
		s = append(s, pairs.Sample{Units: 1, Cost: x.async})
		b = append(b, pairs.Sample{Units: 1, Cost: r.nearest(x.info.Triggered)})
	}
	return pairs.Compare(name, s, b)
}

func (r *row) median(of func(sample) time.Duration) time.Duration {
	var all []time.Duration
	for _, s := range r.samples {
		all = append(all, of(s))
	}
	return median(all)
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
