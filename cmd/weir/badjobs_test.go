package main

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

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
	sink := flow.Discard[int64]()
	return []flow.Job{
		checkpointdemo.Job,
		job("builder-panics", func(*flow.Graph) error { panic("this builder panics") }),
		job("builder-fails", func(*flow.Graph) error { return errors.New("this builder fails") }),
		job("builder-blocks", func(*flow.Graph) error { <-make(chan struct{}); return nil }),
		job("builder-changes", func(g *flow.Graph) error {
			flow.To(numbers(g, fmt.Sprintf("numbers-%d", builds.Add(1))), "out", sink)
			return nil
		}),
		// In the JobManager these two are as they should be.
		job("builder-changes-later", func(g *flow.Graph) error {
			flow.To(numbers(g, "numbers-"+role()), "out", sink)
			return nil
		}),
		job("builder-panics-later", func(g *flow.Graph) error {
			if role() == "taskmanager" {
				panic("this builder panics later")
			}
			flow.To(numbers(g, "numbers"), "out", sink)
			return nil
		}),
		job("graph-empty", func(*flow.Graph) error { return nil }),
		job("graph-faulty", func(g *flow.Graph) error {
			flow.To(numbers(g, "numbers"), "numbers", sink)
			flow.To(numbers(g, ""), "out", sink, flow.Parallelism(-1))
			return nil
		}),
		job("bounded", func(g *flow.Graph) error {
			few := generator.New(generator.Options{Records: 100, End: true}, func(n int64) int64 { return n })
			flow.To(flow.From(g, "numbers", few), "out", sink)
			return nil
		}),
		job("code-panics", func(g *flow.Graph) error {
			flow.To(flow.Map(numbers(g, "numbers"), "divide", func(n int64) int64 { return 1 / (n - 20) }), "out", sink)
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
