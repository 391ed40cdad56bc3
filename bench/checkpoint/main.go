package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/daemon"
	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/rpc"
)

const (
	most       = 2.5 // the bar
	leastPairs = 101
	warmUp     = 20 // checkpoints before the first that counts
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "jobmanager", "taskmanager":
			daemon.Main(checkpointdemo.Job)
		case "steps":
			if err := printSteps(os.Stdout, leastPairs); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(pairs.Main(os.Args[1:], os.Stdout, os.Stderr,
		pairs.Case{Name: "checkpoint/bare", Run: func(n int) pairs.Result { return measure(max(n, leastPairs)).CostAtMost(most) }},
	))
}

// taken is a checkpoint and the bare work of its pair.
type taken struct {
	info            rpc.CheckpointInfo
	synced, changed time.Duration
}

// took is the time from the decision to the link.
func (t taken) took() time.Duration {
	decided, began := t.info.Step(rpc.StepDecided)
	linked, ended := t.info.Step(rpc.StepLinked)
	if !began || !ended {
		panic(fmt.Sprintf("checkpoint %d has no whole timeline: %v", t.info.ID, t.info.Steps))
	}
	return linked - decided
}

// run does n pairs with a cluster of its own; what they showed is kept in all.
func run(n int) (r pairs.Result, all []taken, err error) {
	ctx := context.Background()
	c, err := startCluster(ctx)
	if err != nil {
		return r, nil, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	b, err := startBare(ctx, c)
	if err != nil {
		return r, nil, err
	}
	defer func() { err = errors.Join(err, b.Close(ctx)) }()
	size := 0
	for range warmUp {
		info, err := c.checkpoint(ctx, rand.Text())
		if err != nil {
			return r, nil, err
		}
		if size, err = c.metadata(info); err != nil {
			return r, nil, err
		}
	}
	subject := func() pairs.Sample {
		info, err := c.checkpoint(ctx, rand.Text())
		must(err)
		all = append(all, taken{info: info})
		return pairs.Sample{Units: 1, Cost: all[len(all)-1].took()}
	}
	bare := func() pairs.Sample {
		took, err := b.work(ctx, size)
		must(err)
		if len(all) > 0 {
			all[len(all)-1].synced, all[len(all)-1].changed = b.synced, b.changed
		}
		return pairs.Sample{Units: 1, Cost: took}
	}
	return pairs.Run("checkpoint/bare", subject, bare, n), all, nil
}

func measure(n int) pairs.Result {
	r, _, err := run(n)
	must(err)
	r.Note = "decision to the link's answer; fsync on"
	return r
}

// printSteps prints where the time of checkpoints goes, in the median.
func printSteps(w io.Writer, n int) error {
	r, all, err := run(n)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer t.Flush()
	row := func(name string, of func(taken) time.Duration) {
		var v []time.Duration
		for _, x := range all {
			v = append(v, of(x))
		}
		slices.Sort(v)
		fmt.Fprintf(t, "%s\t%v\t%v\t\n", name, v[len(v)/2].Round(time.Microsecond), v[len(v)*9/10].Round(time.Microsecond))
	}
	fmt.Fprintln(t, "step, after the one before\tmedian\tp90\t")
	last := rpc.StepDecided
	for s := last + 1; s <= rpc.StepLinked; s++ {
		if _, there := all[0].info.Step(s); !there || s == rpc.StepFirstAck {
			continue
		}
		from, to := last, s
		row(s.String(), func(x taken) time.Duration {
			a, _ := x.info.Step(from)
			b, _ := x.info.Step(to)
			return b - a
		})
		last = s
	}
	row("decided to linked", taken.took)
	row("bare file", func(x taken) time.Duration { return x.synced })
	row("bare transactions", func(x taken) time.Duration { return x.changed })
	fmt.Fprintf(t, "cost\t%.2f\t(%.2f to %.2f)\t\n", r.Cost, r.CostLow, r.CostHigh)
	return nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
