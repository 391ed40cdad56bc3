package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/examples/wordcount"
	"github.com/weirflow/weir/internal/stoppoint"
	"github.com/weirflow/weir/rpc"
)

// wordFiles writes files of text and returns their directory and the answer.
func wordFiles(t *testing.T, rng *rand.Rand, files, lines int) (dir string, want []string) {
	t.Helper()
	dir = t.TempDir()
	var all strings.Builder
	for i := range files {
		var b strings.Builder
		for range lines {
			for range 1 + rng.IntN(9) {
				fmt.Fprintf(&b, "w%d ", rng.IntN(1+rng.IntN(400)))
			}
			b.WriteByte('\n')
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("in", i)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		all.WriteString(b.String())
	}
	return dir, wordcount.Count(all.String())
}

func (c *cluster) submitWords(in, out, sleep, interval string) string {
	c.t.Helper()
	return c.submit(rpc.SubmitRequest{
		Entrypoint: wordcount.Name, Parallelism: 3,
		Params: map[string]string{"input": in, "output": out, "sleep": sleep, "split-size": "2000"},
		Options: map[string]string{"execution.checkpointing.interval": interval,
			"restart-strategy.fixed-delay.attempts": "1000"},
	})
}

// finished waits for the job's end and compares what it wrote.
func (c *cluster) finished(job, out string, want []string) {
	c.t.Helper()
	c.await(job, "it is finished", func(d rpc.JobDetail) bool { return d.Status == rpc.JobFinished })
	got, err := wordcount.ReadOutput(out)
	if err != nil {
		c.t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("%d totals %.500q, want %d %.500q", len(got), got, len(want), want)
	}
}

// TestWordsAreCountedOnceThroughKills kills TaskManagers, JobManager and both while files
// are read and splits handed out.
func TestWordsAreCountedOnceThroughKills(t *testing.T) {
	t.Parallel()
	n := rounds(t)
	rng := rand.New(rand.NewPCG(drawSeed(t), 1))
	c := newCluster(t, built(t, stoppableBinary), 2)
	in, want := wordFiles(t, rng, 7, 400*n)
	out := filepath.Join(t.TempDir(), "out")
	job := c.submitWords(in, out, "10ms", "200ms") // more than 9 s of a round
	var met proofs
	kills := []func(string, *rand.Rand, *proofs){c.tearTaskManager, c.tearJobManager, c.tearEverything}
	for range n {
		rng.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
		for _, kill := range kills {
			kill(job, rng, &met)
		}
	}
	c.finished(job, out, want)
	if met.restored == 0 {
		t.Error("nothing was killed before the end")
	}
}

func (c *cluster) tearTaskManager(job string, rng *rand.Rand, met *proofs) {
	c.t.Helper()
	c.tear(job, rng, met, func() {
		i := rng.IntN(len(c.tms))
		c.tms[i].kill()
		c.startTaskManager(i)
	})
}

func (c *cluster) tearJobManager(job string, rng *rand.Rand, met *proofs) {
	c.t.Helper()
	c.tear(job, rng, met, func() {
		c.jm.kill()
		c.startJobManager()
	})
}

func (c *cluster) tearEverything(job string, rng *rand.Rand, met *proofs) {
	c.t.Helper()
	c.tear(job, rng, met, func() {
		for _, p := range append(slices.Clone(c.tms), c.jm) {
			p.kill()
		}
		c.startJobManager()
		for i := range c.tms {
			c.startTaskManager(i)
		}
	})
}

// tear does something to a running job at a random moment and waits until it runs again.
func (c *cluster) tear(job string, rng *rand.Rand, met *proofs, do func()) {
	c.t.Helper()
	c.randomMoment(job, rng)
	before, err := c.client.Get(c.ctx, job)
	if err != nil {
		c.t.Fatal(err)
	}
	if before.Status.Final() {
		return // a slow machine has had it all read
	}
	do()
	c.await(job, "it runs again", client.Running)
	met.restored++
}

// TestTotalsArePublishedThoughNobodyWasTold kills the JobManager when the only checkpoint
// of a job, its last, is a link and no task has been told: they publish when they are
// restored from it. Killed before that, they do everything again.
func TestTotalsArePublishedThoughNobodyWasTold(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"linked:1", "pending:4"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c := emptyCluster(t, built(t, stoppableBinary))
			c.startJobManager(stoppoint.Variable + "=" + point)
			for i := range 2 {
				c.startTaskManager(i)
			}
			in, want := wordFiles(t, rand.New(rand.NewPCG(drawSeed(t), 2)), 3, 50)
			out := filepath.Join(t.TempDir(), "out")
			job := c.submitWords(in, out, "1ms", "1h")
			c.watchUntilGone(job)
			if !c.jm.killed() {
				t.Fatalf("the JobManager ended with %v", c.jm.err)
			}
			if got, err := wordcount.ReadOutput(out); len(got) != 0 {
				t.Fatalf("%q was published before anybody was told; %v", got, err)
			}
			c.startJobManager()
			c.finished(job, out, want)
			l, err := c.client.Checkpoints(c.ctx, job)
			if err != nil {
				t.Fatal(err)
			}
			if restored := point == "linked:1"; (l.Restored > 0) != restored {
				t.Errorf("restored from checkpoint %d", l.Restored)
			}
		})
	}
}
