package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/bench/side"
	"github.com/weirflow/weir/flow"
)

const (
	records = 1_000_000 // of a sample
	// morePairs is the least number of pairs: cores hand segments to each other, which
	// takes longer on some machines and at some times, so samples scatter.
	morePairs = 63
	// gcPercent is the same on all sides.
	gcPercent = 300
	// mostAllocs is what counts as none: segments and blocks of keys, not records.
	mostAllocs = 0.01
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "side" {
		os.Exit(runSide(os.Args[2:]))
	}
	os.Exit(pairs.Main(os.Args[1:], os.Stdout, os.Stderr,
		pairs.Case{Name: "exchange/keys=100000", Run: func(n int) pairs.Result {
			return compare("exchange/keys=100000", 100_000, "table", n).SpeedAtLeast(0.6)
		}},
		pairs.Case{Name: "exchange/keys=1000000", Run: func(n int) pairs.Result {
			return compare("exchange/keys=1000000", 1_000_000, "table", n).SpeedAtLeast(0.6)
		}},
		pairs.Case{Name: "exchange/keys=100000/copied", Run: func(n int) pairs.Result {
			return compareSides("exchange/keys=100000/copied", "copied", 100_000, "table", n).Result
		}},
		pairs.Case{Name: "exchange/keys=1000000/map", Run: func(n int) pairs.Result {
			return compare("exchange/keys=1000000/map", 1_000_000, "map", n).SpeedAtLeast(1.3)
		}},
	))
}

func compare(name string, keys int, bare string, n int) judged {
	return compareSides(name, "job", keys, bare, n)
}

func compareSides(name, subject string, keys int, bare string, n int) judged {
	of := func(which string) *side.Lives {
		return side.NewLives(records, "side", "-of", which, "-keys", strconv.Itoa(keys))
	}
	s, b := of(subject), of(bare)
	defer s.Stop()
	defer b.Stop()
	return judged{pairs.Run(name, s.Sample, b.Sample, max(n, morePairs))}
}

// judged is a result that must also have no allocation per record.
type judged struct{ pairs.Result }

func (r judged) SpeedAtLeast(least float64) pairs.Result {
	x := r.Result.SpeedAtLeast(least)
	if x.AllocsPerUnit >= mostAllocs {
		x.Met, x.Note = false, "the job allocates"
	}
	return x
}

// warmUp is how many records bring in all keys but a few.
func warmUp(keys uint64) int { return max(records, 5*int(keys)) }

// runSide is a process that runs the job or one of the loops.
func runSide(args []string) int {
	flags := flag.NewFlagSet("side", flag.ExitOnError)
	of := flags.String("of", "job", "job, copied, table or map")
	keys := flags.Uint64("keys", 100_000, "number of keys")
	samples := flags.Int("samples", 0, "take so many samples and print them, instead of serving")
	profile := flags.String("profile", "", "file for a CPU profile of the samples")
	_ = flags.Parse(args)
	debug.SetGCPercent(gcPercent)
	var sample func(records int) pairs.Sample
	switch *of {
	case "job":
		sample = (&job{keys: *keys, borrow: []flow.Option{flow.Borrow()}}).start()
	case "copied":
		sample = (&job{keys: *keys}).start()
	case "table":
		sample = startLoop(*keys, tableCounter)
	case "map":
		sample = startLoop(*keys, mapCounter)
	default:
		fmt.Fprintln(os.Stderr, "no side", *of)
		return 2
	}
	if *samples == 0 {
		side.Serve(os.Stdin, os.Stdout, sample)
		return 0
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		must(err)
		must(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	var each []float64
	for range *samples {
		s := sample(records)
		each = append(each, s.PerUnit())
		fmt.Printf("%.1f ns/record, %.4f allocations\n", s.PerUnit(), float64(s.Allocs)/s.Units)
	}
	slices.Sort(each)
	fmt.Printf("%s: best %.1f, median %.1f\n", *of, each[0], each[len(each)/2])
	return 0
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
