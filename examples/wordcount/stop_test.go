package wordcount

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir/connector/file"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
)

// counting is the copying job that counts in n what it has read.
func counting(n *atomic.Int64) flow.Job {
	return flow.Define("counting", func(g *flow.Graph, p Params) error {
		lines := flow.From(g, "lines", file.Lines(file.SourceOptions{Input: p.Input, SplitBytes: int64(p.SplitSize)}))
		slow := flow.Map(lines, "slow", func(line string) string {
			n.Add(1)
			<-time.After(p.Sleep)
			return line
		})
		sink := file.NewSink(file.SinkOptions{Output: p.Output, PartBytes: 200}, func(b []byte, line string) []byte { return append(b, line...) })
		flow.To(flow.Rebalance(slow), "out", sink)
		return nil
	})
}

// stopped is a job that was stopped in the middle of its input.
type stopped struct {
	t       *testing.T
	c       *minicluster.Cluster
	in, out string
}

func (s *stopped) submit(name, sleep string, parallelism int, from string) rpc.SubmitReply {
	s.t.Helper()
	reply, err := s.c.Gateway().Submit(s.t.Context(), rpc.SubmitRequest{
		Entrypoint: name, Parallelism: parallelism, From: from,
		Params:  map[string]string{"input": s.in, "output": s.out, "split-size": "700", "sleep": sleep},
		Options: map[string]string{"execution.checkpointing.interval": "10ms"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return reply
}

// stop stops the job once it has taken a few checkpoints; its end is in the savepoint.
func (s *stopped) stop(name string, parallelism int, drain bool) (savepoint string) {
	s.t.Helper()
	job := s.submit(name, "20ms", parallelism, "").Job
	if _, err := s.c.AwaitCheckpoint(s.t.Context(), job, 3); err != nil {
		s.t.Fatal(err)
	}
	reply, err := s.c.Gateway().StopJob(s.t.Context(), rpc.StopRequest{Job: job.String(), RequestID: "stop", Drain: drain})
	if err != nil || reply.Status != rpc.JobFinished {
		s.t.Fatalf("%+v, %v", reply, err)
	}
	return reply.Path
}

// resume runs a job from the savepoint to its end.
func (s *stopped) resume(name string, parallelism int, savepoint string) {
	s.t.Helper()
	job := s.submit(name, "0s", parallelism, savepoint).Job
	d, err := s.c.Await(s.t.Context(), job, func(d rpc.JobDetail) bool { return d.Status.Final() })
	if err != nil || d.Status != rpc.JobFinished {
		s.t.Fatalf("%v; %s, failure %+v", err, d.Status, d.Failure)
	}
}

// published are the lines of complete files, of which nothing is left that waits.
func (s *stopped) published() []string {
	s.t.Helper()
	got, err := ReadOutput(s.out)
	if err != nil {
		s.t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(s.out, ".weir-*")); err != nil || len(left) > 0 {
		s.t.Errorf("%d files are not published, as %.100q; %v", len(left), left, err)
	}
	return got
}

func newStopped(t *testing.T, in string, jobs ...flow.Job) *stopped {
	t.Helper()
	return &stopped{t, minicluster.ForTest(t, minicluster.Options{Jobs: jobs, TaskManagers: 2, Slots: 4}), in, filepath.Join(t.TempDir(), "out")}
}

// TestOutputOverAStop: what was read before a stop is published when the stop has been
// answered, each line once. A job that was suspended goes on, at another parallelism, to the
// output of a plain run; one that was drained has nothing left to do.
func TestOutputOverAStop(t *testing.T) {
	in, all := input(t, 7, 120)
	lines := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
	slices.Sort(lines)
	for _, p := range [][2]int{{1, 3}, {3, 1}, {2, 2}} {
		for _, drain := range []bool{false, true} {
			t.Run(fmt.Sprintf("lines from %d to %d drain=%t", p[0], p[1], drain), func(t *testing.T) {
				t.Parallel()
				var read atomic.Int64
				s := newStopped(t, in, counting(&read))
				savepoint := s.stop("counting", p[0], drain)
				before, n := s.published(), read.Load()
				if int64(len(before)) != n || n == 0 || n == int64(len(lines)) {
					t.Errorf("%d lines published, %d of %d read", len(before), n, len(lines))
				}
				if !subset(before, lines) {
					t.Errorf("published before the stop: %.500q", before)
				}
				s.resume("counting", p[1], savepoint)
				want := lines
				if drain {
					want = before
				}
				if got := s.published(); !slices.Equal(got, want) || read.Load() != int64(len(want)) {
					t.Errorf("%d lines published and %d read, want %d", len(got), read.Load(), len(want))
				}
			})
		}
	}
}

// TestTotalsOverAStop: totals are emitted at the end, so a suspended job publishes none; a
// drained one publishes those of what it has read, and a job that goes on from there no other.
func TestTotalsOverAStop(t *testing.T) {
	in, all := input(t, 7, 120)
	t.Run("suspend", func(t *testing.T) {
		t.Parallel()
		s := newStopped(t, in, Job)
		savepoint := s.stop(Name, 3, false)
		if got := s.published(); len(got) > 0 {
			t.Errorf("published before the end: %.500q", got)
		}
		s.resume(Name, 2, savepoint)
		if got, want := s.published(), Count(all); !slices.Equal(got, want) {
			t.Errorf("%d totals, want %d, or others", len(got), len(want))
		}
	})
	t.Run("drain", func(t *testing.T) {
		t.Parallel()
		s := newStopped(t, in, Job)
		savepoint := s.stop(Name, 2, true)
		before := s.published()
		if len(before) == 0 {
			t.Error("a drain publishes nothing")
		}
		s.resume(Name, 3, savepoint)
		if got := s.published(); !slices.Equal(got, before) {
			t.Errorf("%d totals, had %d, or others", len(got), len(before))
		}
	})
}

// subset says whether sorted lines are among other sorted ones, each as often at most.
func subset(some, all []string) bool {
	for _, line := range some {
		i := slices.Index(all, line)
		if i < 0 {
			return false
		}
		all = all[i+1:]
	}
	return true
}
