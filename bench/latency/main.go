package main

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir/bench/figures"
	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
)

const (
	rate = 10_000 // records per second
	// Source and sink have other parallelisms than the map, so that no two are fused
	// and every record may go to the other TaskManager.
	ends, middle = 2, 3
	managers     = 2
	warmUp       = 2 * time.Second
	duration     = 5 * time.Second
	filling      = "84 bytes make a record as large as those of the other programs, with its time and its number"
)

// record is what goes through the tasks.
type record struct {
	Number int64
	Made   int64 // nanoseconds since the Unix epoch
	Rest   string
}

// latencies are those of all subtasks of the sink.
type latencies struct {
	mu struct {
		sync.Mutex
		all []time.Duration
	}
}

func (l *latencies) add(_ int64, r record) error {
	d := time.Since(time.Unix(0, r.Made))
	l.mu.Lock()
	l.mu.all = append(l.mu.all, d)
	l.mu.Unlock()
	return nil
}

// take returns the latencies so far, sorted, and begins anew.
func (l *latencies) take() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.mu.all
	l.mu.all = nil
	slices.Sort(all)
	return all
}

func (l *latencies) job() flow.Job {
	return flow.Define("latency", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "source", generator.New(generator.Options{Rate: rate}, func(n int64) record {
			return record{Number: n, Made: time.Now().UnixNano(), Rest: filling}
		}), flow.Parallelism(ends))
		same := flow.Map(in, "map", func(r record) record { return r }, flow.Parallelism(middle))
		flow.To(same, "sink", flow.SinkFunc[record](l.add), flow.Parallelism(ends))
		return nil
	})
}

func main() { os.Exit(figures.Main(os.Args[1:], os.Stdout, os.Stderr, nil, measure)) }

func measure() (list []figures.Figure, err error) {
	ctx := context.Background()
	l := &latencies{}
	c, err := minicluster.New(minicluster.Options{Jobs: []flow.Job{l.job()}, TaskManagers: managers, Slots: 2})
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopped := c.Stop(ctx); err == nil {
			err = stopped
		}
	}()
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	reply, err := c.Gateway().Submit(ctx, rpc.SubmitRequest{Entrypoint: "latency"})
	if err != nil {
		return nil, err
	}
	if _, err := c.Await(ctx, reply.Job, func(d rpc.JobDetail) bool { return d.Status == rpc.JobRunning }); err != nil {
		return nil, err
	}
	<-time.After(warmUp)
	l.take()
	<-time.After(duration)
	all := l.take()
	at := func(share float64) float64 { return all[int(share*float64(len(all)-1))].Seconds() * 1e3 }
	return []figures.Figure{
		{Name: "latency/rate", Value: float64(len(all)) / duration.Seconds(), Unit: "records/s"},
		{Name: "latency/p50", Value: at(0.50), Unit: "ms"},
		{Name: "latency/p99", Value: at(0.99), Unit: "ms", Aim: 10},
		{Name: "latency/max", Value: at(1), Unit: "ms"},
	}, nil
}
