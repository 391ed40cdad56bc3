package main

import (
	"os"

	"github.com/weirflow/weir/bench/pairs"
)

func main() { os.Exit(pairs.Main(os.Args[1:], os.Stdout, os.Stderr, cases()...)) }

// keys of the state in all comparisons.
const keys = 1_000_000

func cases() []pairs.Case {
	return []pairs.Case{
		{Name: "snapshot-sync/groups=1", Run: func(n int) pairs.Result { return syncPart("snapshot-sync/groups=1", 1, n) }},
		{Name: "snapshot-sync/groups=128", Run: func(n int) pairs.Result { return syncPart("snapshot-sync/groups=128", 128, n) }},
		{Name: "snapshot-extra-cpu/groups=1", Run: func(n int) pairs.Result { return extraCPU("snapshot-extra-cpu/groups=1", 1, n) }},
		{Name: "snapshot-extra-cpu/groups=128", Run: func(n int) pairs.Result { return extraCPU("snapshot-extra-cpu/groups=128", 128, n) }},
		{Name: "lookup/batched", Run: lookup},
		{Name: "lookup/against-map", Run: lookupMap},
	}
}
