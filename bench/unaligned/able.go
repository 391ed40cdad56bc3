package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/bench/quota"
	"github.com/weirflow/weir/bench/side"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

const (
	records = 1_000_000 // of a sample
	keys    = 10_000
	// leastPairs and width are the issue's; mostPairs is where we give up.
	leastPairs, mostPairs = 31, 127
	width                 = 0.04
	gcPercent             = 300
	// mostAllocs is what more allocations a record count as none: those of checkpoints.
	mostAllocs = 0.001
)

// able compares the CPU time per record of a job whose checkpoints may overtake data, but
// never have to, with that of one whose always align. Both take checkpoints all the time.
func able(n int) pairs.Result {
	s, b := side.NewLives(records, "side", "-of", "able"), side.NewLives(records, "side", "-of", "aligned")
	defer s.Stop()
	defer b.Stop()
	r := pairs.RunUntil("unaligned/able", s.Sample, b.Sample, max(n, leastPairs), mostPairs, width).SpeedAtLeast(0.95)
	switch {
	case r.AllocsPerUnit-r.BareAllocsPerUnit >= mostAllocs:
		r.Met, r.Note = false, "it allocates more"
	case r.CostHigh-r.CostLow >= width:
		r.Met, r.Note = false, fmt.Sprintf("the interval is not narrower than %v", width)
	}
	return r
}

// runSide is a process that runs a job.
func runSide(args []string) int {
	flags := flag.NewFlagSet("side", flag.ExitOnError)
	of := flags.String("of", "able", "able or aligned")
	_ = flags.Parse(args)
	debug.SetGCPercent(gcPercent)
	options := map[string]string{keyInterval: "100ms"}
	if *of == "able" {
		options[keyUnaligned], options[keyAlignedTimeout] = "true", "10min"
	}
	side.Serve(os.Stdin, os.Stdout, start(options))
	return 0
}

// counted is a job that counts by key in two subtasks. Its source emits what a sample
// allows.
type counted struct{ *quota.Quota }

const (
	counters = 2
	body     = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789ab"
)

type record struct{ Key, Body string }

func (j counted) define() flow.Job {
	return flow.Define("counted", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "source", source{j}, flow.Parallelism(1))
		byKey := flow.KeyBy(in, "by-key", func(r record) string { return r.Key })
		counts := flow.Process(byKey, "count", func(s *flow.Setup) flow.Processor[string, record, int64] {
			return &counter{job: j, total: flow.NewValue[int64](s, "total"), add: func(n *int64) { *n++ }}
		}, flow.Parallelism(counters), flow.Borrow())
		flow.To(counts, "discard", flow.Discard[int64]())
		return nil
	})
}

type source struct{ counted }

func (source) Enumerator() operator.Enumerator {
	return flow.StaticSplits(func(parallelism int) ([][][]byte, error) { return make([][][]byte, parallelism), nil })
}

func (s source) Reader() flow.Reader[record] {
	r := &reader{job: s.counted, names: make([]string, keys), random: 88172645463325252}
	for i := range r.names {
		r.names[i] = fmt.Sprintf("key-%012d", i)
	}
	return r
}

type reader struct {
	job    counted
	names  []string
	random uint64 // xorshift
	at     int64
}

// Open implements [flow.Opener].
func (r *reader) Open(rt *flow.Runtime) error {
	r.job.SetWake(rt.Wake)
	return nil
}

func (r *reader) AddSplits([][]byte) error    { return nil }
func (r *reader) Snapshot() ([][]byte, error) { return nil, nil }

func (r *reader) Poll(emit func(int64, record) bool) (operator.SourceStatus, error) {
	for allowed := r.job.Allowed(); r.at < allowed; {
		r.random ^= r.random << 13
		r.random ^= r.random >> 7
		r.random ^= r.random << 17
		r.at++
		if !emit(r.at, record{r.names[r.random%keys], body}) {
			return operator.SourceMore, nil
		}
	}
	return operator.SourceEmpty, nil
}

type counter struct {
	job   counted
	total *flow.Value[int64]
	add   func(*int64)
	n     int64
}

// Process implements [flow.Processor].
func (c *counter) Process(*flow.Context[string], record, *flow.Out[int64]) error {
	c.total.Update(c.add)
	if c.n++; c.n%quota.Report == 0 {
		c.job.Counted()
	}
	return nil
}

// start runs the job on a cluster in this process and returns what samples it.
func start(options map[string]string) func(records int) pairs.Sample {
	ctx := context.Background()
	j := counted{quota.New(counters)}
	c, err := minicluster.New(minicluster.Options{Jobs: []flow.Job{j.define()}})
	must(err)
	must(c.Start(ctx))
	reply, err := c.Gateway().Submit(ctx, rpc.SubmitRequest{Entrypoint: "counted", Parallelism: counters, Options: options})
	must(err)
	_, err = c.Await(ctx, reply.Job, func(d rpc.JobDetail) bool {
		return d.Status == rpc.JobRunning && d.LastCheckpoint > 0 && j.Opened()
	})
	must(err)
	j.Run(records)
	return func(records int) pairs.Sample {
		return pairs.CPU(float64(records), func() { j.Run(records) })
	}
}
