package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// audited reads a savepoint and compares it with the closed form.
func (c *cluster) audited(where string) picture {
	c.t.Helper()
	p, err := look(c.ctx, c.checkpoints(), where)
	if err != nil {
		c.t.Fatalf("read %s: %v", where, err)
	}
	audit(c.t, rpc.CheckpointInfo{}, p)
	return p
}

// TestStoppedJobGoesOnFromItsSavepoint: savepoint, stop, a kill of the JobManager in
// between; a second job that comes to the whole answer and is drained; and a third one,
// which ends by itself.
func TestStoppedJobGoesOnFromItsSavepoint(t *testing.T) {
	t.Parallel()
	const records = 6000
	c := newCluster(t, built(t, weirBinary), 2)
	submit := func(name string, more ...string) string {
		c.t.Helper()
		args := []string{"submit", "checkpoint-demo", "--detach", "--name", name, "--param", "rate=1000", "--param", "records=6000",
			"--checkpoint-interval", "300ms", "--parallelism", "2", "--set", "execution.checkpointing.data-inline-threshold=0"}
		return c.json(append(args, more...)...)[0]["job"].(string)
	}
	first := submit("first")
	c.await(first, "it runs", client.Running)
	c.awaitCheckpoint(first, 1)
	taken := c.json("savepoint", "first", "--dir", "team/before", "--request-id", "s1")[0]
	where := taken["path"].(string)
	if again := c.json("savepoint", "first", "--dir", "team/before", "--request-id", "s1")[0]; again["path"] != where {
		t.Errorf("the same request: %v and %v", where, again["path"])
	}
	if dir := filepath.Dir(where); dir != filepath.Join(c.checkpoints(), "savepoints", "team", "before") {
		t.Errorf("the savepoint is in %s", dir)
	}
	early := c.audited(where)
	c.json("checkpoint", "trigger", "first", "--full")

	c.jm.kill()
	c.startJobManager()
	c.await(first, "it runs again", client.Running)
	stopped := c.json("stop", "first", "--request-id", "r1")[0]
	if stopped["status"] != "FINISHED" || stopped["failure"] != "" {
		t.Fatalf("stop: %v", stopped)
	}
	late := c.audited(stopped["path"].(string))
	if late.emitted() < early.emitted() || late.emitted() >= records {
		t.Errorf("%d numbers at the savepoint, %d at the stop, of %d", early.emitted(), late.emitted(), records)
	}
	d := c.json("show", first)[0]
	if d["status"] != "FINISHED" || d["savepoint"] != stopped["path"] {
		t.Errorf("show: %v", d)
	}
	_, stderr, err := c.weir("stop", first)
	if exitCode(err) != 1 || !strings.Contains(stderr, stopped["path"].(string)) {
		t.Errorf("a second stop: %v\n%s", err, stderr)
	}

	second := submit("first", "--from", stopped["path"].(string))
	if again := c.json("stop", "first", "--request-id", "r1")[0]; again["path"] != stopped["path"] {
		t.Errorf("the first job's request stops the second: %v", again)
	}
	c.awaitCheckpoint(second, weir.CheckpointID(stopped["checkpoint"].(float64)))
	c.awaitAnswer(second, records)
	drained := c.json("stop", second, "--drain")[0]
	if p := c.audited(drained["path"].(string)); p.emitted() != records {
		t.Errorf("the drained savepoint has %d numbers of %d", p.emitted(), records)
	}
	third := submit("third", "--from", drained["path"].(string))
	c.await(third, "it has nothing left to do", func(d rpc.JobDetail) bool { return d.Status == rpc.JobFinished })
	if _, p := c.auditNewest(third); p.emitted() != records {
		t.Errorf("the last checkpoint of a job that has ended has %d numbers of %d", p.emitted(), records)
	}
	c.audited(where)
}
