package main

import (
	"os"

	"github.com/weirflow/weir/bench/pairs"
)

func main() {
	os.Exit(pairs.Main(os.Args[1:], os.Stdout, os.Stderr, pairs.Case{Name: "chain", Run: compare}))
}

// mostCost is the bar.
const mostCost = 2.5

func compare(n int) pairs.Result {
	s := openSubject()
	defer s.close()
	r := pairs.Run("source → map → filter → sink, 24-byte records", s.sample, bareSample, n).CostAtMost(mostCost)
	if r.AllocsPerUnit > 0.001 {
		r.Met, r.Note = false, "the chain allocates"
	}
	return r
}
