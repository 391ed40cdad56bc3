package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/bench/side"
	"github.com/weirflow/weir/netstack/link/grpclink"
)

const (
	segments  = 20_000    // of a sample of pure transport
	records   = 1_000_000 // of a sample with work
	morePairs = 31        // at least: processes wake each other, so samples scatter
	gcPercent = 200       // the same on all sides
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "side":
			os.Exit(runSide(os.Args[2:]))
		case "sender":
			os.Exit(runSender(os.Args[2:]))
		}
	}
	os.Exit(pairs.Main(os.Args[1:], os.Stdout, os.Stderr,
		pairs.Case{Name: "transport/pure", Run: func(n int) pairs.Result {
			return compare("transport/pure", "pure", segments, n).SpeedAtLeast(0.27)
		}},
		pairs.Case{Name: "transport/count", Run: func(n int) pairs.Result {
			return compare("transport/count", "count", records, n).SpeedAtLeast(0.65)
		}},
		pairs.Case{Name: "transport/blocked-neighbour", Run: neighbour},
		pairs.Case{Name: "transport/latency", Run: latency},
	))
}

func compare(name, work string, units, n int) pairs.Result {
	s := side.Start(units, "side", "-of", "stack", "-work", work)
	b := side.Start(units, "side", "-of", "tcp", "-work", work)
	defer s.Stop()
	defer b.Stop()
	return pairs.Run(name, s.Sample, b.Sample, max(n, morePairs))
}

// neighbour compares a task beside one of another job on the same connection, which
// is blocked since its consumer takes nothing, with a task that has no neighbour.
func neighbour(n int) pairs.Result {
	beside := side.Start(segments, "side", "-of", "stack", "-work", "neighbour")
	alone := side.Start(segments, "side", "-of", "stack", "-work", "pure")
	defer beside.Stop()
	defer alone.Stop()
	return pairs.Run("transport/blocked-neighbour", beside.Sample, alone.Sample, max(n, morePairs)).SpeedAtLeast(0.9)
}

// latency compares the median latency of a small message, sent every millisecond
// beside full load on the same stream, with the window ÷ the throughput: what a
// message must wait for if the window is full. Each sample of the bare side is a
// sample of the throughput.
func latency(n int) pairs.Result {
	loaded := side.Start(segments, "side", "-of", "stack", "-work", "latency")
	defer loaded.Stop()
	bulk := side.Start(segments, "side", "-of", "stack", "-work", "pure", "-channels", "4")
	defer bulk.Stop()
	perWindow := func() pairs.Sample {
		s := bulk.Sample()
		s.Units *= segmentBytes / float64(grpclink.Window)
		return s
	}
	return pairs.Run("transport/latency", loaded.Sample, perWindow, n).CostAtMost(1.5)
}

// receiver runs samples of one side.
type receiver interface {
	sample(units int) pairs.Sample
	sender() *child
}

func runSide(args []string) int {
	flags := flag.NewFlagSet("side", flag.ExitOnError)
	of := flags.String("of", "stack", "stack or tcp")
	work := flags.String("work", "pure", "pure, count, neighbour or latency")
	channels := flags.Int("channels", 1, "bulk channels of the stack")
	samples := flags.Int("samples", 0, "take so many samples and print them, instead of serving")
	profile := flags.String("profile", "", "file for a CPU profile of the samples")
	_ = flags.Parse(args)
	debug.SetGCPercent(gcPercent)
	var r receiver
	switch *of {
	case "stack":
		r = startStack(*work, *channels)
	case "tcp":
		r = startTCP(*work)
	default:
		fmt.Fprintln(os.Stderr, "no side", *of)
		return 2
	}
	defer func() { r.sender().stop() }()
	if *samples == 0 {
		side.Serve(os.Stdin, os.Stdout, r.sample)
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
		before := pairs.ProcessCPU()
		s := r.sample(unitsOf(*work))
		here := pairs.ProcessCPU() - before
		fmt.Printf("CPU: receiver %.1f, sender %.1f ns/unit; ", float64(here)/s.Units, float64(r.sender().cpu)/s.Units)
		each = append(each, s.PerUnit())
		fmt.Printf("%.1f ns/unit, %.4f allocations\n", s.PerUnit(), float64(s.Allocs)/s.Units)
	}
	slices.Sort(each)
	fmt.Printf("%s %s: best %.1f, median %.1f\n", *of, *work, each[0], each[len(each)/2])
	return 0
}

func unitsOf(work string) int {
	if work == "count" {
		return records
	}
	return segments
}

// runSender is the child of a side.
func runSender(args []string) int {
	flags := flag.NewFlagSet("sender", flag.ExitOnError)
	of := flags.String("of", "stack", "stack or tcp")
	work := flags.String("work", "pure", "pure, count, neighbour or latency")
	channels := flags.Int("channels", 1, "bulk channels of the stack")
	peer := flags.String("peer", "", "address of the receiver")
	profile := flags.String("profile", "", "file for a CPU profile")
	_ = flags.Parse(args)
	debug.SetGCPercent(gcPercent)
	if path := os.Getenv("SENDER_PROFILE"); path != "" && *profile == "" {
		*profile = path
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		must(err)
		must(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	switch *of {
	case "stack":
		sendStack(*work, *channels, *peer)
	case "tcp":
		sendTCP(*work, *peer)
	}
	return 0
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
