package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// phase is jobs that run at the same time on one cluster, and the bare work between
// their checkpoints.
type phase struct {
	rows   []*row
	lasts  time.Duration
	change []time.Duration // bare transactions
}

// pause is the time between two rounds of bare work.
const pause = 300 * time.Millisecond

func (p *phase) row(name string) *row {
	for _, r := range p.rows {
		if r.name == name {
			return r
		}
	}
	panic("no row " + name)
}

// run starts the cluster and the jobs, lets them run, and evaluates their checkpoints.
func (p *phase) run(ctx context.Context) (err error) {
	c, err := startCluster(len(p.rows))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	b, err := startBare(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close(ctx)) }()
	for _, r := range p.rows {
		if err := c.submit(ctx, r); err != nil {
			return err
		}
	}
	for end := time.Now().Add(p.lasts); time.Now().Before(end); <-time.After(pause) {
		if err := p.look(ctx, c, b); err != nil {
			return err
		}
	}
	for _, r := range p.rows {
		if r.samples, err = r.evaluate(ctx, c); err != nil {
			return err
		}
	}
	for _, r := range p.rows {
		if err := c.cancel(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// look looks for checkpoints and does a round of bare work.
func (p *phase) look(ctx context.Context, c *cluster, b *bare) error {
	for _, r := range p.rows {
		if err := r.look(ctx, c); err != nil {
			return err
		}
		if !r.weighed || r.bytes == 0 {
			continue
		}
		at := time.Now()
		took, err := b.write(r.bytes, r.files())
		if err != nil {
			return err
		}
		r.bare = append(r.bare, bareWrite{at, took})
	}
	took, err := b.Change(ctx)
	p.change = append(p.change, took)
	return err
}

// print prints the checkpoints one by one.
func (p *phase) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer t.Flush()
	fmt.Fprintln(t, "row\tcheckpoint\tduration\trest\tlast sync\tasync\tcaptured\tproven\tunaligned\tbegun\treached, by subtask\tsynchronous\t")
	for _, r := range p.rows {
		for _, s := range r.samples {
			fmt.Fprintf(t, "%s\t%d\t%v\t%v\t%v\t%v\t%d\t%d\t%d\t%d\t%v\t%v\t\n", r.name, s.info.ID, s.duration, s.rest,
				s.lastSync, s.async, s.inFlight.Captured, s.inFlight.Bytes, s.unaligned, s.begun, s.reached, s.sync)
		}
	}
	for _, r := range p.rows {
		if r.weighed {
			fmt.Fprintf(t, "%s\tbare write of %d bytes: %v\t\n", r.name, r.bytes, median(r.writes()))
		}
	}
	fmt.Fprintf(t, "\tbare transaction: %v\t\n", median(p.change))
}
