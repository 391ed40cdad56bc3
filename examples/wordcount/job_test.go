package wordcount

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
)

// text makes lines of words that occur unequally often.
func text(seed uint64, lines int) string {
	rng := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	for range lines {
		for range rng.IntN(8) {
			fmt.Fprintf(&b, "Word%d, ", rng.IntN(1+rng.IntN(200)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// input writes files and returns their directory and all their text.
func input(t *testing.T, files, lines int) (dir, all string) {
	t.Helper()
	dir = t.TempDir()
	for i := range files {
		s := text(uint64(i), lines)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("in-%02d.txt", i)), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		all += s
	}
	return dir, all
}

func TestWords(t *testing.T) {
	t.Parallel()
	if got := slices.Collect(Words("Über den Fluss, x1--y! ")); !slices.Equal(got, []string{"über", "den", "fluss", "x1", "y"}) {
		t.Errorf("got %q", got)
	}
	if got := slices.Collect(Words(strings.Repeat("a", 2*maxWord+1))); len(got) != 3 || got[2] != "a" {
		t.Errorf("got %q", got)
	}
	if got := Count("b a\na\n"); !slices.Equal(got, []string{"a\t2", "b\t1"}) {
		t.Errorf("got %q", got)
	}
}

func TestTotalsAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	dir, all := input(t, 5, 400)
	for _, set := range []map[string]string{nil, {"execution.checkpointing.interval": "20ms"}, {"execution.checkpointing.interval": "1h"}} {
		out := filepath.Join(t.TempDir(), "out")
		minicluster.Run(t, Job, minicluster.JobOptions{
			Params: map[string]string{"input": dir, "output": out, "split-size": "1000"}, Set: set, Parallelism: 3,
			Cluster: minicluster.Options{TaskManagers: 2, Slots: 2},
		})
		got, err := ReadOutput(out)
		if err != nil {
			t.Fatal(err)
		}
		if want := Count(all); !slices.Equal(got, want) {
			t.Errorf("%v: %d totals %.300q, want %d %.300q", set, len(got), got, len(want), want)
		}
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				t.Errorf("%s is left", e.Name())
			}
		}
	}
}

// What cannot be written fails tasks, and the job goes on when it can.
func TestOutputThatCannotBeWrittenRestartsTheJob(t *testing.T) {
	t.Parallel()
	dir, all := input(t, 2, 50)
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{Job}})
	reply, err := c.Gateway().Submit(t.Context(), rpc.SubmitRequest{
		Entrypoint: Name, Params: map[string]string{"input": dir, "output": out}, Parallelism: 2,
		Options: map[string]string{"execution.checkpointing.interval": "20ms", "restart-strategy.fixed-delay.delay": "10ms", "restart-strategy.fixed-delay.attempts": "100000"},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Await(t.Context(), reply.Job, func(d rpc.JobDetail) bool { return d.Restarts > 2 || d.Status.Final() })
	if err != nil || d.Status.Final() || d.Failure == nil || d.Failure.Operator != "out" || !strings.Contains(d.Failure.Message, out) {
		t.Fatalf("%v; %s, failure %+v", err, d.Status, d.Failure)
	}
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if d, err = c.Await(t.Context(), reply.Job, func(d rpc.JobDetail) bool { return d.Status.Final() }); err != nil || d.Status != rpc.JobFinished {
		t.Fatalf("%v; %s, failure %+v", err, d.Status, d.Failure)
	}
	if got, err := ReadOutput(out); err != nil || !slices.Equal(got, Count(all)) {
		t.Errorf("%d totals, want %d; %v", len(got), len(Count(all)), err)
	}
}

// What can never be read fails the job at once, and the failure says why.
func TestInputThatIsNotThereFailsTheJob(t *testing.T) {
	t.Parallel()
	in := filepath.Join(t.TempDir(), "nothing")
	c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{Job}})
	reply, err := c.Gateway().Submit(t.Context(), rpc.SubmitRequest{
		Entrypoint: Name, Params: map[string]string{"input": in, "output": t.TempDir()}, Options: map[string]string{"execution.checkpointing.interval": "20ms"},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Await(t.Context(), reply.Job, func(d rpc.JobDetail) bool { return d.Status.Final() })
	if err != nil || d.Restarts != 0 || d.Failure == nil || d.Failure.Operator != "lines" || !strings.Contains(d.Failure.Message, in) {
		t.Errorf("%v; %s after %d restarts, failure %+v", err, d.Status, d.Restarts, d.Failure)
	}
}

func TestBadParams(t *testing.T) {
	t.Parallel()
	p := Params{SplitSize: 0, MaxLine: 1 << 30, Sleep: -time.Second}
	err := p.validate()
	for _, name := range []string{"input", "output", "split-size", "max-line", "sleep"} {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("parameter %q", name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	flow.Check(t, Job, map[string]string{"input": "in", "output": "out"})
}
