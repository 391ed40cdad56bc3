package minicluster_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// lines is a bounded source of one split.
type lines []string

func (l lines) Enumerator() operator.Enumerator {
	return flow.StaticSplits(func(parallelism int) ([][][]byte, error) {
		splits := make([][][]byte, parallelism)
		splits[0] = [][]byte{{0}}
		return splits, nil
	})
}

func (l lines) Reader() flow.Reader[string] { return &lineReader{lines: l} }

type lineReader struct {
	lines    lines
	assigned bool
	next     byte
}

func (r *lineReader) AddSplits(splits [][]byte) error {
	for _, s := range splits {
		r.assigned, r.next = true, s[0]
	}
	return nil
}

func (r *lineReader) Poll(emit func(int64, string) bool) (operator.SourceStatus, error) {
	for r.assigned && int(r.next) < len(r.lines) {
		r.next++
		if !emit(operator.NoTimestamp, r.lines[r.next-1]) {
			return operator.SourceMore, nil
		}
	}
	return operator.SourceEnd, nil
}

func (r *lineReader) Snapshot() ([][]byte, error) {
	if !r.assigned {
		return nil, nil
	}
	return [][]byte{{r.next}}, nil
}

// wordCount counts the words of a text and emits each new count.
func wordCount(text []string, out flow.Sink[string]) flow.Job {
	return flow.Define("words", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "lines", lines(text))
		words := flow.FlatMap(in, "split", func(line string) iter.Seq[string] { return strings.FieldsSeq(line) })
		byWord := flow.KeyBy(words, "by-word", func(w string) string { return w })
		counts := flow.Process(byWord, "count", func(s *flow.Setup) flow.Processor[string, string, string] {
			n := flow.NewValue[int64](s, "n")
			return flow.ProcessFunc[string, string, string](func(c *flow.Context[string], w string, out *flow.Out[string]) error {
				n.Set(n.Get() + 1)
				out.Emit(fmt.Sprintf("%s %d", w, n.Get()))
				return nil
			})
		})
		flow.To(counts, "out", out)
		return nil
	})
}

func TestRunReturnsWhenABoundedJobHasFinished(t *testing.T) {
	for _, parallelism := range []int{1, 3} {
		t.Run(fmt.Sprintf("parallelism=%d", parallelism), func(t *testing.T) {
			t.Parallel()
			var out minicluster.Collector[string]
			text := []string{"to be or not", "to be that is", "the question"}
			d := minicluster.Run(t, wordCount(text, out.Sink()), minicluster.JobOptions{
				Parallelism: parallelism, Cluster: minicluster.Options{TaskManagers: 2, Slots: 2},
			})
			want := []string{"be 1", "be 2", "is 1", "not 1", "or 1", "question 1", "that 1", "the 1", "to 1", "to 2"}
			if got := slices.Sorted(slices.Values(out.Values())); !slices.Equal(got, want) {
				t.Errorf("got %q", got)
			}
			if d.Status != rpc.JobFinished {
				t.Errorf("job is %s", d.Status)
			}
		})
	}
}

func ExampleRun() {
	var out minicluster.Collector[string]
	job := wordCount([]string{"so much", "so little"}, out.Sink())

	var t reporter // in a test: its *testing.T
	minicluster.Run(t, job, minicluster.JobOptions{})

	fmt.Println(strings.Join(slices.Sorted(slices.Values(out.Values())), ", "))
	// Output: little 1, much 1, so 1, so 2
}

// reporter stands for a test.
type reporter struct{}

func (reporter) Helper()                           {}
func (reporter) Context() context.Context          { return context.Background() }
func (reporter) Cleanup(func())                    {}
func (reporter) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (reporter) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// counted is an unbounded source of numbers, slowly.
type counted struct{ lines }

func (counted) Reader() flow.Reader[string] { return &countReader{} }

type countReader struct {
	lineReader
}

func (r *countReader) Poll(emit func(int64, string) bool) (operator.SourceStatus, error) {
	if r.assigned {
		r.next++
		emit(operator.NoTimestamp, "n")
	}
	return operator.SourceMore, nil
}

// countJob counts without end.
func countJob() flow.Job {
	return flow.Define("counted", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "numbers", counted{})
		byWord := flow.KeyBy(in, "by-word", func(w string) string { return w })
		counts := flow.Process(byWord, "count", func(s *flow.Setup) flow.Processor[string, string, int64] {
			n := flow.NewValue[int64](s, "n")
			return flow.ProcessFunc[string, string, int64](func(_ *flow.Context[string], _ string, out *flow.Out[int64]) error {
				n.Set(n.Get() + 1)
				out.Emit(n.Get())
				return nil
			})
		})
		flow.To(counts, "out", flow.Discard[int64]())
		return nil
	})
}

func TestJobSurvivesItsTaskManager(t *testing.T) {
	c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{countJob()}, TaskManagers: 2, Slots: 1, Dir: t.TempDir()})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	reply, err := c.Gateway().Submit(ctx, rpc.SubmitRequest{Entrypoint: "counted", Options: map[string]string{
		"execution.checkpointing.interval": "20ms", "restart-strategy.fixed-delay.delay": "10ms",
	}, Parallelism: 2})
	if err != nil {
		t.Fatal(err)
	}
	before, err := c.AwaitCheckpoint(ctx, reply.Job, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.StopTaskManager(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.StopTaskManager(ctx, 0); err == nil {
		t.Error("a TaskManager was stopped twice")
	}
	if err := c.StartTaskManager(ctx, 0); err != nil {
		t.Fatal(err)
	}
	d, err := c.Await(ctx, reply.Job, func(d rpc.JobDetail) bool { return d.Restarts > 0 && d.Status == rpc.JobRunning })
	if err != nil {
		t.Fatalf("job is %s (%s): %v", d.Status, d.Detail, err)
	}
	if _, err := c.AwaitCheckpoint(ctx, reply.Job, d.LastCheckpoint); err != nil {
		t.Fatal(err)
	}
	list, err := c.Gateway().Checkpoints(ctx, reply.Job.String())
	if err != nil {
		t.Fatal(err)
	}
	if list.Restored < before.ID {
		t.Errorf("restored from checkpoint %d, want at least %d", list.Restored, before.ID)
	}
}

func TestJobStartsFromAnotherClustersDirectory(t *testing.T) {
	dir := t.TempDir()
	first := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{countJob()}, TaskManagers: 2, Slots: 1, Dir: dir})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r := rpc.SubmitRequest{Entrypoint: "counted", Parallelism: 2, Options: map[string]string{
		"execution.checkpointing.interval": "20ms", "execution.checkpointing.unaligned.enabled": "true",
		"execution.checkpointing.num-retained": "1000", "restart-strategy.type": "none",
	}}
	reply, err := first.Gateway().Submit(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	var from rpc.CheckpointInfo
	for from.PersistedBytes == 0 {
		if from, err = first.AwaitCheckpoint(ctx, reply.Job, from.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Gateway().Cancel(ctx, reply.Job.String()); err != nil {
		t.Fatal(err)
	}
	second := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{countJob()}, OpenStore: func(location string) (blobstore.Store, error) {
		if location != dir {
			t.Errorf("opened %s, want %s", location, dir)
		}
		return first.Store(), nil
	}})
	r.From, r.Parallelism = from.Path, 3
	if reply, err = second.Gateway().Submit(ctx, r); err != nil {
		t.Fatal(err)
	}
	if _, err := second.AwaitCheckpoint(ctx, reply.Job, from.ID); err != nil {
		d, _ := second.Gateway().Get(ctx, reply.Job.String())
		t.Errorf("%v: %s, %s", err, d.Status, d.Detail)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	job := flow.Define("j", func(*flow.Graph, struct{}) error { return nil })
	for name, o := range map[string]minicluster.Options{
		"no jobs":    {},
		"negative":   {Jobs: []flow.Job{job}, Slots: -1},
		"two jobs":   {Jobs: []flow.Job{job, job}},
		"two stores": {Jobs: []flow.Job{job}, Dir: "x", Store: mem.New()},
	} {
		if _, err := minicluster.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
