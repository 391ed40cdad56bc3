package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/bench/side"
)

// Bars on the cost per subtask, of the larger job to the smaller.
const (
	mostTo10000  = 1.5
	mostTo100000 = 2.5
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "side" {
		os.Exit(runSide(os.Args[2:]))
	}
	os.Exit(pairs.Main(os.Args[1:], os.Stdout, os.Stderr,
		pairs.Case{Name: "coordinator/10000:1000", Run: func(n int) pairs.Result {
			return compare("coordinator/10000:1000", 10_000, 1000, n).CostAtMost(mostTo10000)
		}},
		pairs.Case{Name: "coordinator/100000:10000", Run: func(n int) pairs.Result {
			return compare("coordinator/100000:10000", 100_000, 10_000, n).CostAtMost(mostTo100000)
		}},
	))
}

// compare measures checkpoints of a large job against those of a small one, as many
// subtasks in all.
func compare(name string, large, small, n int) pairs.Result {
	units := max(large, 30_000)
	l := side.Start(units, "side", "-subtasks", strconv.Itoa(large))
	defer l.Stop()
	s := side.Start(units, "side", "-subtasks", strconv.Itoa(small))
	defer s.Stop()
	r := pairs.Run(name, l.Sample, s.Sample, n)
	r.Note = fmt.Sprintf("one checkpoint of %d subtasks takes %.2f ms of CPU to decide, one of %d %.2f ms",
		large, r.SubjectNanos*float64(large)/1e6, small, r.BareNanos*float64(small)/1e6)
	return r
}

// runSide is a process that has one job.
func runSide(args []string) int {
	flags := flag.NewFlagSet("side", flag.ExitOnError)
	subtasks := flags.Int("subtasks", 1000, "number of subtasks")
	_ = flags.Parse(args)
	w := newWorld(*subtasks)
	side.Serve(os.Stdin, os.Stdout, func(units int) pairs.Sample {
		runtime.GC()
		return pairs.CPU(float64(units), func() {
			for range units / *subtasks {
				w.checkpoint()
			}
		})
	})
	return 0
}
