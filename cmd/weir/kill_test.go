package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/internal/stoppoint"
	"github.com/weirflow/weir/rpc"
)

// proofs are the rare moments that a suite of kills must have met (DECISIONS 36).
type proofs struct {
	restored      int // restores from a checkpoint > 0
	whilePending  int // kills with a checkpoint pending
	beforeTelling int // kills between link and notification
}

// drawSeed is the seed of the moments of kills: WEIR_SEED, else a random one.
func drawSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("WEIR_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("WEIR_SEED=%q is not a seed", text)
		}
	}
	t.Logf("WEIR_SEED=%d", seed)
	return seed
}

func TestJobCountsEveryRecordOnceThroughKills(t *testing.T) {
	t.Parallel()
	n := rounds(t)
	rng := rand.New(rand.NewPCG(drawSeed(t), 0))
	c := newCluster(t, built(t, stoppableBinary), 2)
	const rate = 2000
	records := int64(rate * (8 + 6*n))                                                                                                                         // about as many as the rounds take; kills after the end do no harm
	job := c.submit(rpc.SubmitRequest{Params: map[string]string{"records": fmt.Sprint(records), "rate": fmt.Sprint(rate), "size": "200", "parallelism": "3"}}) // of 4 slots: both TaskManagers have tasks
	var met proofs
	for round := range n {
		c.t.Logf("round %d", round+1)
		c.killTaskManager(job, rng, &met)
		c.killJobManager(job, rng, &met)
		c.killEverything(job, rng, &met)
	}
	c.stopAt(job, stoppoint.Pending, 13+rng.IntN(5), &met) // in the third checkpoint of 6 tasks
	c.stopAt(job, stoppoint.Linked, 2, &met)
	c.awaitAnswer(job, records)
	t.Logf("met: %+v", met)
	if met.restored < 1 || met.whilePending < 1 || met.beforeTelling < 1 {
		t.Errorf("the suite did not meet what it is for: %+v", met)
	}
}

// randomMoment waits for a new checkpoint and then for up to two intervals.
func (c *cluster) randomMoment(job string, rng *rand.Rand) weir.CheckpointID {
	c.t.Helper()
	d, err := c.client.Get(c.ctx, job)
	if err != nil {
		c.t.Fatal(err)
	}
	id := c.awaitCheckpoint(job, d.LastCheckpoint)
	wait(time.Duration(rng.Int64N(int64(600 * time.Millisecond))))
	return id
}

func (c *cluster) killTaskManager(job string, rng *rand.Rand, met *proofs) {
	c.t.Helper()
	least := c.randomMoment(job, rng)
	before, err := c.client.Get(c.ctx, job)
	if err != nil {
		c.t.Fatal(err)
	}
	i := rng.IntN(len(c.tms))
	c.tms[i].kill()
	c.t.Logf("killed TaskManager %d", i+1)
	c.startTaskManager(i)
	c.await(job, "it was restarted", func(d rpc.JobDetail) bool { return d.Restarts > before.Restarts && client.Running(d) })
	c.resumed(job, least, met)
}

func (c *cluster) killJobManager(job string, rng *rand.Rand, met *proofs) {
	c.t.Helper()
	least := c.randomMoment(job, rng)
	c.jm.kill()
	c.t.Log("killed the JobManager")
	c.startJobManager()
	c.resumed(job, least, met)
}

// killEverything is a power cut.
func (c *cluster) killEverything(job string, rng *rand.Rand, met *proofs) {
	c.t.Helper()
	least := c.randomMoment(job, rng)
	all := append([]*daemonProcess{c.jm}, c.tms...)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, p := range all {
		p.kill()
	}
	c.t.Log("killed everything")
	c.startJobManager()
	for i := range c.tms {
		c.startTaskManager(i)
	}
	c.resumed(job, least, met)
}

// resumed waits until the job runs and checks what it was restored from.
func (c *cluster) resumed(job string, least weir.CheckpointID, met *proofs) {
	c.t.Helper()
	c.await(job, "it runs", client.Running)
	l, err := c.client.Checkpoints(c.ctx, job)
	if err != nil {
		c.t.Fatal(err)
	}
	if l.Restored < least {
		c.t.Fatalf("restored from checkpoint %d, but %d was complete", l.Restored, least)
	}
	met.restored++
	c.awaitCheckpoint(job, l.Restored)
	c.auditNewest(job)
}

// stopAt starts the JobManager anew so that it kills itself when it reaches the point
// for the n-th time, waits for that, and has the job resumed.
func (c *cluster) stopAt(job string, point stoppoint.Point, n int, met *proofs) {
	c.t.Helper()
	c.jm.kill()
	c.startJobManager(fmt.Sprintf("%s=%s:%d", stoppoint.Variable, point, n))
	seen := c.watchUntilGone(job)
	if !c.jm.killed() {
		c.t.Fatalf("the JobManager ended with %v instead of at the point %s", c.jm.err, point)
	}
	c.startJobManager()
	c.await(job, "it runs", client.Running)
	l, err := c.client.Checkpoints(c.ctx, job)
	if err != nil {
		c.t.Fatal(err)
	}
	switch point {
	case stoppoint.Pending:
		met.whilePending++
		if l.Restored < seen {
			c.t.Fatalf("restored from checkpoint %d, but %d was complete", l.Restored, seen)
		}
	case stoppoint.Linked:
		// Nobody had been told of the checkpoint, and yet it counts.
		if l.Restored <= seen {
			c.t.Fatalf("restored from checkpoint %d; the one after %d was a link of the chain", l.Restored, seen)
		}
		met.beforeTelling++
	}
	met.restored++
	c.awaitCheckpoint(job, l.Restored)
	c.auditNewest(job)
}

// watchUntilGone asks for the newest completed checkpoint until the JobManager is
// gone, and returns the last answer.
func (c *cluster) watchUntilGone(job string) (seen weir.CheckpointID) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		if d, err := c.client.Get(c.ctx, job); err == nil {
			seen = d.LastCheckpoint
		}
		select {
		case <-c.jm.ended:
			return seen
		case <-tick.C:
		case <-limit:
			c.t.Fatal("the JobManager does not reach the point")
		}
	}
}

// A TaskManager that stands still is given up. When it goes on, with tasks that others
// run by now, it does no harm and gets work again.
func TestFrozenTaskManagerIsFencedWhenItComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 2)
	const records = 24000
	job := c.submit(rpc.SubmitRequest{Params: map[string]string{"records": fmt.Sprint(records), "parallelism": "3", "size": "100"}})
	c.await(job, "it runs", client.Running)
	c.startTaskManager(2)
	least := c.awaitCheckpoint(job, 0)
	frozen := c.tms[0]
	if err := frozen.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	d := c.await(job, "it runs elsewhere", func(d rpc.JobDetail) bool { return d.Restarts > 0 && client.Running(d) })
	for _, task := range d.Tasks {
		if strings.HasSuffix(task.TaskManager, frozen.ready.ID[:8]) {
			t.Errorf("%s[%d] runs on the TaskManager that stands still", task.Vertex, task.Attempt.Subtask)
		}
	}
	if l, err := c.client.Checkpoints(c.ctx, job); err != nil || l.Restored < least {
		t.Errorf("restored from %d, but %d was complete: %v", l.Restored, least, err)
	}
	if err := frozen.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.awaitAnswer(job, records)
	if d, err := c.client.Get(c.ctx, job); err != nil || d.Restarts != 1 {
		t.Errorf("%d restarts, want 1: %v", d.Restarts, err)
	}
	// Its slots are of use again: this needs them all.
	other := c.submit(rpc.SubmitRequest{Name: "other", Params: map[string]string{"parallelism": "3"}})
	c.await(other, "it runs", client.Running)
}
