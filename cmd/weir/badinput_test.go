package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// badCluster runs this test binary with the bad jobs.
func badCluster(t *testing.T, taskManagers int) *cluster {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newCluster(t, exe, taskManagers, actAsWeir+"=1")
}

// victim is a job that must not be harmed by what others do.
type victim struct {
	c   *cluster
	job string
}

func (c *cluster) startVictim(records int64) victim {
	c.t.Helper()
	job := c.submit(rpc.SubmitRequest{Name: "victim", Params: map[string]string{"size": "100", "records": itoa(records)}})
	c.await(job, "it runs", client.Running)
	return victim{c, job}
}

// unharmed checks that the job never restarted, that its checkpoints go on and agree
// with its sources, and that no daemon has ended.
func (v victim) unharmed() {
	v.c.t.Helper()
	d, err := v.c.client.Get(v.c.ctx, v.job)
	if err != nil {
		v.c.t.Fatal(err)
	}
	v.c.awaitCheckpoint(v.job, d.LastCheckpoint)
	v.c.auditNewest(v.job)
	if d, err = v.c.client.Get(v.c.ctx, v.job); err != nil || d.Restarts != 0 || !client.Running(d) {
		v.c.t.Errorf("the other job was harmed: %s, %d restarts, %v", d.Status, d.Restarts, err)
	}
	for _, p := range append(v.c.tms[:len(v.c.tms):len(v.c.tms)], v.c.jm) {
		select {
		case <-p.ended:
			v.c.t.Errorf("%s has ended: %v", p.name, p.err)
		default:
		}
	}
}

func itoa(n int64) string { b, _ := json.Marshal(n); return string(b) }

// refused is a command line and what its error must say.
type refused struct {
	name string
	args []string
	code int
	says []string
}

func (c *cluster) expectRefusals(cases []refused) {
	for _, x := range cases {
		c.t.Run(x.name, func(t *testing.T) {
			out, stderr, err := runWeir(t, c.bin, c.env, append([]string{"--jobmanager", c.control}, x.args...)...)
			if code := exitCode(err); code != x.code {
				t.Errorf("exit code %d, want %d", code, x.code)
			}
			for _, want := range x.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("error does not say %q:\n%s", want, stderr)
				}
			}
			if out != "" && !strings.HasSuffix(out, " submitted\n") {
				t.Errorf("standard output has %q", out)
			}
		})
	}
}

func TestBadSubmissionsAreRefusedAndHarmNobody(t *testing.T) {
	t.Parallel()
	c := badCluster(t, 3)
	v := c.startVictim(0)
	submit := func(args ...string) []string { return append([]string{"submit"}, args...) }
	if out, stderr, err := c.weir("submit", "checkpoint-demo", "--name", "first", "--request-id", "one", "--detach", "--set", "slot.request.timeout=1h"); err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr)
	}
	blocked, blockedLater := make(chan refusal, 1), make(chan refusal, 1)
	go func() { blocked <- c.attempt("submit", "builder-blocks") }()
	go func() { blockedLater <- c.attempt("submit", "builder-blocks-later") }()
	c.expectRefusals([]refused{
		{"unknown flag", submit("checkpoint-demo", "--paralelism", "2"), 2, []string{"unknown flag: --paralelism", "--help"}},
		{"unknown command", []string{"sumbit"}, 2, []string{`unknown command "sumbit"`, "did you mean submit?"}},
		{"unknown entry point", submit("chekpoint-demo"), 2, []string{`unknown entry point "chekpoint-demo"`, "checkpoint-demo", "builder-panics"}},
		{"unknown entry point of a plan", []string{"plan", "chekpoint-demo"}, 2, []string{`unknown entry point "chekpoint-demo"`}},
		{"bad address", []string{"list", "--jobmanager", "foo:bar"}, 2, []string{`"foo:bar" is no address`, "host:port"}},
		{"no entry point", submit(), 2, []string{"takes the name of an entry point"}},
		{"unknown parameter", submit("checkpoint-demo", "--param", "rat=1"), 2, []string{`unknown parameter "rat"`, "rate", "records"}},
		{"bad parameter", submit("checkpoint-demo", "--param", "rate=fast", "--param", "keys=0"), 2, []string{`parameter "rate"`, `"fast"`}},
		{"bad pair", submit("checkpoint-demo", "--param", "rate"), 2, []string{`"rate" is not key=value`}},
		{"unknown option", submit("checkpoint-demo", "--set", "execution.checkpointing.intervall=1s"), 2, []string{`"execution.checkpointing.intervall"`, `"execution.checkpointing.interval"`, "docs/config.md"}},
		{"bad option", submit("checkpoint-demo", "--set", "execution.checkpointing.interval=often"), 2, []string{"execution.checkpointing.interval", "often"}},
		{"option twice", submit("checkpoint-demo", "--checkpoint-interval", "1s", "--set", "execution.checkpointing.interval=1s"), 2, []string{"give one"}},
		{"negative parallelism", submit("checkpoint-demo", "--parallelism", "-1"), 2, []string{"must not be negative"}},
		{"builder panics", submit("builder-panics"), 2, []string{"builder-panics", "this builder panics", "badjobs_test.go"}},
		{"builder fails", submit("builder-fails"), 2, []string{"builder-fails", "this builder fails"}},
		{"builder changes", submit("builder-changes"), 2, []string{"builder-changes", "not deterministic", "numbers-", "hint"}},
		{"empty graph", submit("graph-empty"), 2, []string{"graph-empty"}},
		{"all faults of a graph at once", submit("graph-faulty"), 2, []string{`"numbers"`, "used twice", "parallelism", "-1"}},
		{"duplicate job name", submit("checkpoint-demo", "--name", "first"), 1, []string{`"first" is taken`, "choose another name"}},
		{"request id of another job", submit("checkpoint-demo", "--name", "second", "--request-id", "one"), 1, []string{`request id "one"`, `"first"`}},
		{"unknown job", []string{"show", "nobody"}, 1, []string{"nobody"}},
		{"no JobManager there", []string{"list", "--jobmanager", "127.0.0.1:1"}, 1, []string{"cannot reach a JobManager at 127.0.0.1:1", "--jobmanager"}},
		{"builder panics later", submit("builder-panics-later"), 1, []string{"this builder panics later"}},
		{"builder changes later", submit("builder-changes-later"), 1, []string{"graph mismatch", "numbers-jobmanager", "numbers-taskmanager"}},
		{"code panics", submit("code-panics"), 1, []string{`operator "divide", subtask 0`, "integer divide by zero"}},
	})
	t.Run("same request id", func(t *testing.T) {
		first, err := c.client.Get(c.ctx, "first")
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.client.Submit(c.ctx, rpc.SubmitRequest{Entrypoint: "checkpoint-demo", Name: "first", RequestID: "one"})
		if err != nil || r.Job != first.Job || !r.Existed {
			t.Errorf("got %+v, %v; want job %s", r, err, first.Job)
		}
	})
	t.Run("builder blocks", func(t *testing.T) {
		r := <-blocked
		if r.code != 1 || !strings.Contains(r.stderr, "builder-blocks") || !strings.Contains(r.stderr, "must not wait") {
			t.Errorf("exit code %d: %s", r.code, r.stderr)
		}
	})
	t.Run("builder blocks later", func(t *testing.T) {
		r := <-blockedLater
		if r.code != 1 || !strings.Contains(r.stderr, "builder-blocks-later") || !strings.Contains(r.stderr, "did not return within") {
			t.Errorf("exit code %d: %s", r.code, r.stderr)
		}
	})
	v.unharmed()
}

// refusal is how a command ended.
type refusal struct {
	code   int
	stderr string
}

func (c *cluster) attempt(args ...string) refusal {
	_, stderr, err := c.weir(args...)
	return refusal{exitCode(err), stderr}
}

func TestJobThatNeedsMoreSlotsWaitsAndSaysSo(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 1)
	v := c.startVictim(0)
	waiting := c.submit(rpc.SubmitRequest{Name: "waiting", Params: map[string]string{"parallelism": "3"}})
	d := c.await(waiting, "it says what it needs", func(d rpc.JobDetail) bool { return d.Detail != "" })
	if !strings.Contains(d.Detail, "needs 3 more slots") {
		t.Errorf("detail is %q", d.Detail)
	}
	r := c.attempt("submit", "checkpoint-demo", "--name", "hopeless", "--param", "parallelism=9", "--set", "slot.request.timeout=500ms")
	if r.code != 1 || !strings.Contains(r.stderr, "no slots within 500ms") || !strings.Contains(r.stderr, "needs 9 more slots") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	v.unharmed()
	c.startTaskManager(1)
	c.startTaskManager(2)
	c.await(waiting, "it runs", client.Running)
	v.unharmed()
}

func TestTaskManagerOfOtherCodeIsNotUsed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 0)
	ours := c.bin
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.bin, c.env = exe, []string{actAsWeir + "=1"}
	c.startTaskManager(0)
	c.bin, c.env = ours, nil
	job := c.submit(rpc.SubmitRequest{})
	d := c.await(job, "it says what it needs", func(d rpc.JobDetail) bool {
		info, err := c.client.Cluster(c.ctx)
		return err == nil && len(info.TaskManagers) == 1 && d.Detail != ""
	})
	if !strings.Contains(d.Detail, "none of the 1 TaskManagers has the job's code id") {
		t.Errorf("detail is %q", d.Detail)
	}
	c.startTaskManager(1)
	d = c.await(job, "it runs", client.Running)
	for _, task := range d.Tasks {
		if !strings.HasSuffix(task.TaskManager, c.tms[1].ready.ID[:8]) {
			t.Errorf("%s[%d] runs on %s", task.Vertex, task.Attempt.Subtask, task.TaskManager)
		}
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 2)
	v := c.startVictim(3000)
	c.awaitAnswer(v.job, 3000)
	l, err := c.client.Checkpoints(c.ctx, v.job)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := newestCompleted(l)
	good, err := os.ReadFile(filepath.Join(info.Path, "_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(name string, change func(b []byte) []byte) string {
		dir := filepath.Join(c.checkpoints(), name, "chk-1")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "_metadata"), change(append([]byte(nil), good...)), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	from := func(path string) []string {
		return []string{"submit", "checkpoint-demo", "--name", "again", "--from", path}
	}
	c.expectRefusals([]refused{
		{"cut", from(damaged("cut", func(b []byte) []byte { return b[:len(b)/2] })), 2, []string{"cut/chk-1", "damaged", "earlier checkpoint"}},
		{"flipped", from(damaged("flipped", func(b []byte) []byte { b[len(b)/2] ^= 0x10; return b })), 2, []string{"flipped/chk-1", "damaged"}},
		{"longer", from(damaged("longer", func(b []byte) []byte { return append(b, 0) })), 2, []string{"longer/chk-1", "damaged"}},
		{"empty", from(damaged("empty", func([]byte) []byte { return nil })), 2, []string{"empty/chk-1"}},
		{"something else", from(damaged("else", func([]byte) []byte { return []byte("#!/bin/sh\necho hello\n") })), 2, []string{"else/chk-1", "not a snapshot"}},
		{"nothing", from(filepath.Join(c.checkpoints(), "nothing", "chk-1")), 1, []string{"nothing/chk-1", "no snapshot"}},
		{"going up", from(c.checkpoints() + "/../chk-1"), 2, []string{"goes up"}},
	})
	v.unharmed()
}
