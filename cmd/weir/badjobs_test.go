package main

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/flow"
)

// badJobs are what a binary can carry that ought not to harm anybody else, and
// checkpoint-demo, which must not be harmed.
func badJobs() []flow.Job {
	var builds atomic.Int64
	numbers := func(g *flow.Graph, name string) flow.Stream[int64] {
		return flow.From(g, name, generator.New(generator.Options{Rate: 100}, func(n int64) int64 { return n }))
	}
	job := func(name string, build func(g *flow.Graph) error) flow.Job {
		return flow.Define(name, func(g *flow.Graph, _ struct{}) error { return build(g) })
	}
	return []flow.Job{
		checkpointdemo.Job,
		job("builder-panics", func(*flow.Graph) error { panic("this builder panics") }),
		job("builder-fails", func(*flow.Graph) error { return errors.New("this builder fails") }),
		job("builder-blocks", func(*flow.Graph) error { <-make(chan struct{}); return nil }),
		job("builder-changes", func(g *flow.Graph) error {
			flow.To(numbers(g, fmt.Sprintf("numbers-%d", builds.Add(1))), "out", flow.Discard[int64]())
			return nil
		}),
		job("builder-changes-later", func(g *flow.Graph) error {
			// The same in the JobManager, and another in every TaskManager.
			flow.To(numbers(g, "numbers-"+role()), "out", flow.Discard[int64]())
			return nil
		}),
		job("graph-without-sink", func(g *flow.Graph) error { numbers(g, "numbers"); return nil }),
		job("same-name-twice", func(g *flow.Graph) error {
			flow.To(numbers(g, "numbers"), "numbers", flow.Discard[int64]())
			return nil
		}),
		job("code-panics", func(g *flow.Graph) error {
			out := flow.Map(numbers(g, "numbers"), "divide", func(n int64) int64 { return n / (n - 20) })
			flow.To(out, "out", flow.Discard[int64]())
			return nil
		}),
		job("code-blocks", func(g *flow.Graph) error {
			out := flow.Map(numbers(g, "numbers"), "stuck", func(n int64) int64 { time.Sleep(time.Hour); return n })
			flow.To(out, "out", flow.Discard[int64]())
			return nil
		}),
	}
}

// role is what this process is.
func role() string {
	for _, arg := range os.Args {
		if arg == "taskmanager" || arg == "jobmanager" {
			return arg
		}
	}
	return "client"
}
