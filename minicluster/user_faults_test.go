package minicluster_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// trouble is user code that goes wrong in one place, and works in all others. Which
// place that is changes between jobs, while a builder of the last one may still run:
// the cancelled attempt does not wait for it.
type trouble struct{ now atomic.Pointer[fault] }

type fault struct {
	place string
	how   func() error
}

func (x *trouble) is(place string) bool {
	f := x.now.Load()
	return f != nil && f.place == place
}

func (x *trouble) at(place string) error {
	if f := x.now.Load(); f != nil && f.place == place {
		return f.how()
	}
	return nil
}

// source, mapper and sink call at wherever they are called.
type (
	troubledSource struct {
		lines
		x *trouble
	}
	troubledReader struct {
		lineReader
		x *trouble
	}
	troubledMapper struct{ x *trouble }
	enumerating    struct {
		operator.Enumerator
		x *trouble
	}
)

func (s troubledSource) Reader() flow.Reader[string] {
	return &troubledReader{lineReader{lines: s.lines}, s.x}
}
func (s troubledSource) Enumerator() operator.Enumerator {
	return enumerating{s.lines.Enumerator(), s.x}
}

func (e enumerating) Assign(ctx context.Context, n int) ([][][]byte, error) {
	if err := e.x.at("enumerator"); err != nil {
		return nil, err
	}
	return e.Enumerator.Assign(ctx, n)
}

func (r *troubledReader) Poll(emit func(int64, string) bool) (operator.SourceStatus, error) {
	if r.x.is("status") {
		return operator.SourceEnd + 1, nil
	}
	if err := r.x.at("poll"); err != nil {
		return operator.SourceEnd, err
	}
	return r.lineReader.Poll(emit)
}

func (m troubledMapper) Open(*flow.Runtime) error        { return m.x.at("open") }
func (m troubledMapper) Close() error                    { return m.x.at("close") }
func (m troubledMapper) Map(line string) (string, error) { return line, m.x.at("map") }

func troubledJob(x *trouble) flow.Job {
	return flow.Define("troubled", func(g *flow.Graph, _ struct{}) error {
		if err := x.at("builder"); err != nil {
			return err
		}
		in := flow.From(g, "source", flow.Source[string](troubledSource{lines{"a", "b"}, x}))
		mapped := flow.MapWith(in, "map", troubledMapper{x})
		counted := flow.Process(flow.KeyBy(mapped, "key", func(v string) string { return v }), "count", func(*flow.Setup) flow.Processor[string, string, string] {
			return flow.ProcessFunc[string, string, string](func(_ *flow.Context[string], v string, out *flow.Out[string]) error {
				out.Emit(v)
				return x.at("process")
			})
		})
		flow.To(counted, "sink", flow.SinkFunc[string](func(int64, string) error { return x.at("sink") }))
		return nil
	})
}

// Whatever user code does, the job fails with the operator, the subtask and a stack, and
// its slots and buffers are there for the next job.
func TestFaultsOfUserCodeNameTheOperator(t *testing.T) {
	t.Parallel()
	x := &trouble{}
	c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{troubledJob(x)}, Slots: 1, Memory: 1 << 20})
	ways := []struct {
		name    string
		how     func() error
		message string
		stack   string // of what the user's function itself does; of an error it says who returned it
	}{
		{"error", func() error { return errors.New("no such user") }, "no such user", "error returned by "},
		{"panic", func() error { panic("boom") }, "boom", "minicluster_test.(*trouble).at"},
		{"goexit", func() error { runtime.Goexit(); return nil }, "runtime.Goexit", "minicluster_test.(*trouble).at"},
	}
	for place, op := range map[string]string{
		"enumerator": "source", "poll": "source", "open": "map", "map": "map", "close": "map", "process": "count", "sink": "sink", "status": "source",
	} {
		for _, way := range ways {
			x.now.Store(&fault{place, way.how})
			want, stack := way.message, way.stack
			if place == "status" {
				want, stack = "the reader returned source status 3", ""
			}
			if place == "enumerator" && way.name == "goexit" {
				stack = "" // a goroutine that is gone has none
			}
			d := runTroubled(t, c)
			f := d.Failure
			if d.Status != rpc.JobFailed || f == nil {
				t.Fatalf("%s in %s: job is %s, %v", way.name, place, d.Status, f)
			}
			subtask := int32(0)
			if place == "enumerator" {
				subtask = -1
			}
			if f.Operator != op || f.Subtask != subtask || !strings.Contains(f.Message, want) || !strings.Contains(f.Stack, stack) || f.Fault == weir.FaultSystem {
				t.Errorf("%s in %s: %+v", way.name, place, f)
			}
		}
	}
	x.now.Store(nil)
	if d := runTroubled(t, c); d.Status != rpc.JobFinished {
		t.Errorf("after all that a good job is %s: %v", d.Status, d.Failure)
	}
}

func TestBuilderThatExitsIsRefused(t *testing.T) {
	t.Parallel()
	x := &trouble{}
	x.now.Store(&fault{"builder", func() error { runtime.Goexit(); return nil }})
	c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{troubledJob(x)}})
	_, err := c.Gateway().Submit(t.Context(), rpc.SubmitRequest{Entrypoint: "troubled"})
	if err == nil || !strings.Contains(err.Error(), `build job "troubled": the builder ended its goroutine by runtime.Goexit`) {
		t.Errorf("got %v", err)
	}
}

// runTroubled runs the job once to its end.
func runTroubled(t *testing.T, c *minicluster.Cluster) rpc.JobDetail {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, errors.New("the job did not end"))
	defer cancel()
	reply, err := c.Gateway().Submit(ctx, rpc.SubmitRequest{Entrypoint: "troubled", Options: map[string]string{"restart-strategy.type": "none"}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Await(ctx, reply.Job, func(d rpc.JobDetail) bool { return d.Status.Final() })
	if err != nil {
		t.Fatal(fmt.Errorf("job is %s (%s): %w", d.Status, d.Detail, err))
	}
	return d
}
