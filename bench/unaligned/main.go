package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/daemon"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "jobmanager", "taskmanager":
			daemon.Main(traced())
		case "side":
			os.Exit(runSide(os.Args[2:]))
		case "rows":
			os.Exit(printRows(os.Args[2:]))
		}
	}
	backPressure, tenfold := once(backPressure), once(tenfold)
	name := func(name string, run func(name string) pairs.Result) pairs.Case {
		return pairs.Case{Name: name, Run: func(int) pairs.Result { return run(name) }}
	}
	os.Exit(pairs.Main(os.Args[1:], os.Stdout, os.Stderr,
		name("unaligned/5ms", func(n string) pairs.Result { return backPressure().ours(n, "unaligned-5ms").CostAtMost(1.5) }),
		name("unaligned/5ms/size", func(n string) pairs.Result { return backPressure().size(n, "unaligned-5ms").Within(0.8, 1.2) }),
		name("unaligned/50ms", func(n string) pairs.Result { return backPressure().ours(n, "unaligned-50ms").CostAtMost(1.5) }),
		name("unaligned/50ms/size", func(n string) pairs.Result { return backPressure().size(n, "unaligned-50ms").Within(0.8, 1.2) }),
		name("unaligned/timeout/switched", func(n string) pairs.Result { return backPressure().switched(n) }),
		name("unaligned/timeout/late", func(n string) pairs.Result { return backPressure().late(n).CostAtMost(3) }),
		name("unaligned/tenfold/sync", func(n string) pairs.Result { return tenfold().lastSync(n).CostAtMost(1.3) }),
		name("unaligned/tenfold/async", func(n string) pairs.Result { return tenfold().async(n).CostAtMost(1.5) }),
		pairs.Case{Name: "unaligned/able", Run: able},
	))
}

// once returns a function that runs a phase when it is first wanted.
func once(made func() *phase) func() *phase {
	return sync.OnceValue(func() *phase {
		p := made()
		must(p.run(context.Background()))
		return p
	})
}

// printRows runs a phase and prints its checkpoints one by one.
func printRows(args []string) int {
	flags := flag.NewFlagSet("rows", flag.ExitOnError)
	ten := flags.Bool("tenfold", false, "those with ten times the queue")
	_ = flags.Parse(args)
	p := backPressure()
	if *ten {
		p = tenfold()
	}
	if err := p.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p.print(os.Stdout)
	return 0
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
