package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/rpc"
)

// gcReport is what `weir checkpoint gc -o json` prints, as far as it is looked at.
type gcReport struct {
	Orphans []struct {
		Dir string `json:"dir"`
	} `json:"orphans"`
	Unknown []struct {
		Dir string `json:"dir"`
	} `json:"unknown_jobs"`
	InUse        int `json:"snapshots_in_use"`
	DeletedFiles int `json:"deleted_files"`
}

func (c *cluster) gc(flags ...string) (r gcReport) {
	c.t.Helper()
	out, errs, err := c.weir(append([]string{"checkpoint", "gc", "-o", "json", "--min-age", "0s"}, flags...)...)
	if err != nil {
		c.t.Fatalf("gc: %v\n%s%s", err, out, errs)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		c.t.Fatalf("%v in %s", err, out)
	}
	return r
}

// TestStorageIsLookedAfterBesideARunningJob: what a killed JobManager leaves is found and
// removed, and what the job needs stays whole; then the job goes on elsewhere, and owns what
// it started from.
func TestStorageIsLookedAfterBesideARunningJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 1)
	options := map[string]string{"execution.checkpointing.interval": "50ms", "execution.checkpointing.data-inline-threshold": "0"}
	job := c.submit(rpc.SubmitRequest{Options: options, Params: map[string]string{"rate": "500"}})
	last := c.awaitCheckpoint(job, 5)
	for range 2 {
		c.jm.kill()
		c.startJobManager()
		last = c.awaitCheckpoint(job, last)
	}
	// What a crash between unlink and removal leaves, and a job that nobody knows.
	write := func(parts ...string) {
		t.Helper()
		file := filepath.Join(append([]string{c.checkpoints()}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("state"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(job, "chk-1", "v0-s0-e1-n1.state")
	write(strings.Repeat("ab", 16), "chk-1", "x")
	found := c.gc()
	if len(found.Orphans) == 0 || len(found.Unknown) != 1 || found.DeletedFiles != 0 {
		t.Errorf("found %+v", found)
	}
	if done := c.gc("--delete"); done.DeletedFiles == 0 {
		t.Errorf("deleted %+v", done)
	}
	if _, err := os.Stat(filepath.Join(c.checkpoints(), job, "chk-1")); err == nil {
		t.Error("chk-1 is still there")
	}
	if _, err := os.Stat(filepath.Join(c.checkpoints(), strings.Repeat("ab", 16), "chk-1", "x")); err != nil {
		t.Errorf("a file of an unknown job: %v", err)
	}
	c.awaitCheckpoint(job, last)
	if _, errs, err := c.weir("cancel", job); err != nil {
		t.Fatalf("cancel: %v\n%s", err, errs)
	}
	list, err := c.client.Checkpoints(c.ctx, job)
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	for _, info := range list.Recent {
		if info.Status == rpc.CheckpointCompleted && info.Path != "" {
			newest = info.Path
			break
		}
	}
	for _, command := range [][]string{{"checkpoint", "verify", newest}, {"checkpoint", "inspect", newest}, {"savepoint", "check", newest, "checkpoint-demo"}} {
		if out, errs, err := c.weir(command...); err != nil {
			t.Errorf("%s: %v\n%s%s", command, err, out, errs)
		}
	}
	out, errs, err := c.weir("submit", "checkpoint-demo", "--name", "checkpoint-demo", "--from", "latest", "--restore-mode", "claim",
		"--param", "rate=500", "--checkpoint-interval", "50ms", "--detach", "-o", "json")
	if err != nil {
		t.Fatalf("submit: %v\n%s%s", err, out, errs)
	}
	var reply struct{ Job string }
	if err := json.Unmarshal([]byte(out), &reply); err != nil {
		t.Fatal(err)
	}
	d := c.await(reply.Job, "the claimed checkpoint is replaced", func(d rpc.JobDetail) bool { return d.LastCheckpoint > list.Recent[0].ID+6 })
	if !strings.Contains(d.RestoreReason, "newest") {
		t.Errorf("restored because %q", d.RestoreReason)
	}
	if _, err := os.Stat(newest); err == nil {
		t.Errorf("the claimed checkpoint %s is still there", newest)
	}
	c.gc("--delete")
	c.awaitCheckpoint(reply.Job, d.LastCheckpoint)
}
