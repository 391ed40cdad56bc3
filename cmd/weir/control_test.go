package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// exitCode is that of a command which ended with err.
func exitCode(err error) int {
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.ExitCode()
	default:
		return -1
	}
}

// lines decodes the JSON lines that a command printed.
func lines(t *testing.T, out string) (all []map[string]any) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if line == "" {
			continue
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		all = append(all, v)
	}
	return all
}

// hasKeys checks that an object has at least these fields.
func hasKeys(t *testing.T, what string, v map[string]any, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if _, ok := v[k]; !ok {
			t.Errorf("%s: no %q in %v", what, k, v)
		}
	}
}

func (c *cluster) json(args ...string) []map[string]any {
	c.t.Helper()
	out, stderr, err := c.weir(append(args, "-o", "json")...)
	if err != nil {
		c.t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return lines(c.t, out)
}

func TestCommandsPrintJSONAndText(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 2)
	if l := c.json("list"); len(l) != 0 {
		t.Errorf("an empty list is %v", l)
	}
	plan := c.json("plan", "checkpoint-demo", "--param", "parallelism=3")
	hasKeys(t, "plan", plan[0], "hash", "slots", "vertices", "edges", "warnings", "text")
	if plan[0]["slots"] != 3.0 {
		t.Errorf("plan needs %v slots, want 3", plan[0]["slots"])
	}
	submitted := c.json("submit", "checkpoint-demo", "--detach", "--name", "mine", "--request-id", "r1", "--param", "rate=500",
		"--set", "restart-strategy.fixed-delay.delay=10ms", "--checkpoint-interval", "200ms", "--parallelism", "2")
	hasKeys(t, "submit", submitted[0], "job", "name", "existed")
	job := submitted[0]["job"].(string)
	c.awaitCheckpoint(job, 2)
	for _, name := range []string{"mine", job} {
		d := c.json("show", name)[0]
		hasKeys(t, "show", d, "job", "name", "entrypoint", "status", "tasks", "running", "restarts", "last_checkpoint", "params", "options", "task_list", "request_id")
		if d["job"] != job || d["status"] != "RUNNING" || len(d["task_list"].([]any)) != 4 {
			t.Errorf("show: %v", d)
		}
	}
	if l := c.json("list"); len(l) != 1 || l[0]["job"] != job {
		t.Errorf("list: %v", l)
	}
	checkpoints := c.json("checkpoints", "mine")
	hasKeys(t, "checkpoints", checkpoints[0], "checkpoint", "status", "triggered", "duration_ms", "bytes", "queued_bytes", "predicted_ms", "subtasks")
	subtasks := checkpoints[len(checkpoints)-1]["subtasks"].([]any)
	if len(subtasks) != 4 {
		t.Fatalf("%d subtasks", len(subtasks))
	}
	hasKeys(t, "subtask", subtasks[0].(map[string]any), "vertex", "subtask", "acknowledged_ms", "start_delay_ms", "alignment_ms", "sync_ms", "async_ms", "state_bytes")
	for _, args := range [][]string{{"list"}, {"show", "mine"}, {"checkpoints", "mine", "--subtasks"}, {"plan", "checkpoint-demo"}} {
		out, stderr, err := c.weir(args...)
		if err != nil || len(out) < 50 {
			t.Errorf("weir %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr)
		}
	}
	if l := c.json("cancel", "mine"); l[0]["status"] != "CANCELED" {
		t.Errorf("cancel: %v", l)
	}
	if l := c.json("cancel", job); l[0]["status"] != "CANCELED" {
		t.Errorf("second cancel: %v", l)
	}
	// The name is free again, and the latest so called is shown.
	again := c.json("submit", "checkpoint-demo", "--detach", "--name", "mine")[0]["job"]
	if d := c.json("show", "mine")[0]; d["job"] != again || again == job {
		t.Errorf("show: job %v, want %v", d["job"], again)
	}
}

func TestFollowingASubmissionEndsWithTheJobOrAnInterrupt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 1)
	follow := func() (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.Command(c.bin, "--jobmanager", c.control, "submit", "checkpoint-demo", "-o", "json")
		cmd.SysProcAttr = ownGroup()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		scan := bufio.NewScanner(out)
		if !scan.Scan() {
			t.Fatal("says nothing")
		}
		return cmd, scan
	}
	cmd, _ := follow()
	c.await("checkpoint-demo", "it runs", client.Running)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	c.await("checkpoint-demo", "it still runs", client.Running)
	c.json("cancel", "checkpoint-demo")
	cmd, scan := follow()
	c.await("checkpoint-demo", "it runs", client.Running)
	c.json("cancel", "checkpoint-demo")
	if !scan.Scan() || !strings.Contains(scan.Text(), `"CANCELED"`) {
		t.Errorf("the end of the job is %q", scan.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("cancelled: %v", err)
	}
}

func TestJobStartsFromWhatTheDemoKept(t *testing.T) {
	t.Parallel()
	bin, keep := built(t, weirBinary), filepath.Join(t.TempDir(), "keep")
	out, stderr, err := runWeir(t, bin, nil, "demo", "--mode", "aligned", "--interval", "200ms", "--keep", keep)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	path := out[strings.LastIndexByte(strings.TrimSpace(out), '\n')+1:]
	if path = strings.TrimSpace(path); !strings.HasPrefix(path, keep) {
		t.Fatalf("last line is %q", path)
	}
	startsFrom(t, keep, path, keep)
}

func TestJobStartsFromTheCheckpointOfAnotherCluster(t *testing.T) {
	t.Parallel()
	first := newCluster(t, built(t, weirBinary), 1)
	job := first.submit(rpc.SubmitRequest{Params: map[string]string{"keys": "3000", "size": "50", "rate": "10000"}})
	for p := (picture{}); p.files == 0 || p.emitted() < 10000; {
		first.awaitCheckpoint(job, first.awaitCheckpoint(job, 0))
		_, p = first.auditNewest(job)
	}
	first.json("cancel", job)
	l, err := first.client.Checkpoints(first.ctx, job)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := newestCompleted(l)
	startsFrom(t, first.checkpoints(), info.Path, filepath.Join(t.TempDir(), "other"))
}

// startsFrom starts a job on a new cluster, with a checkpoint directory of its own,
// from a checkpoint at path, which lies in the directory from.
func startsFrom(t *testing.T, from, path, dir string) {
	t.Helper()
	start, err := look(t.Context(), from, path)
	if err != nil || start.emitted() == 0 {
		t.Fatalf("%s: sources at %v, %v", path, start.positions, err)
	}
	c := emptyCluster(t, built(t, weirBinary))
	c.extra = []string{"--checkpoint-dir", dir}
	c.startJobManager()
	c.startTaskManager(0)
	job := c.json("submit", "checkpoint-demo", "--detach", "--from", path, "--checkpoint-interval", "200ms",
		"--param", "size=50", "--param", "keys="+itoa(start.keys))[0]["job"].(string)
	c.await(job, "it runs", client.Running)
	l, err := c.client.Checkpoints(c.ctx, job)
	if err != nil || l.Restored == 0 {
		t.Fatalf("restored from %d, %v", l.Restored, err)
	}
	c.awaitCheckpoint(job, l.Restored)
	if l, err = c.client.Checkpoints(c.ctx, job); err != nil {
		t.Fatal(err)
	}
	info, _ := newestCompleted(l)
	now, err := look(c.ctx, dir, info.Path)
	if err != nil {
		t.Fatal(err)
	}
	audit(t, info, now)
	for split, done := range start.positions {
		if now.positions[split] < done {
			t.Errorf("split %d went back from %d to %d", split, done, now.positions[split])
		}
	}
	if d := c.json("show", job)[0]; d["restored_from"] == nil {
		t.Errorf("restored_from is missing in %v", d)
	}
	c.tms[0].kill() // and once more, now from its own
	c.startTaskManager(0)
	c.await(job, "it was restarted", func(d rpc.JobDetail) bool { return d.Restarts > 0 && client.Running(d) })
	if again, err := look(c.ctx, from, path); err != nil || again.emitted() != start.emitted() {
		t.Errorf("what it started from is not as it was: %v", err)
	}
}

// tempDirFor gives commands a directory for temporary files of their own.
func tempDirFor(t *testing.T) (dir, env string) {
	dir = t.TempDir()
	return dir, "TMPDIR=" + dir
}

// leftOver fails if a directory is not empty, or processes that know it still run.
func leftOver(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left", e.Name())
	}
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range commands {
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), dir) {
			t.Errorf("process is left: %q", strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
}

// interruptAfter starts a command, interrupts it when a line of its standard error
// or output contains text, and returns its exit code.
func interruptAfter(t *testing.T, env, text string, bin string, args ...string) int {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = ownGroup()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	limit := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	var said []string
	for scan := bufio.NewScanner(r); scan.Scan(); {
		said = append(said, scan.Text())
		if strings.Contains(scan.Text(), text) {
			_ = cmd.Process.Signal(syscall.SIGINT)
		}
	}
	_ = cmd.Wait()
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, text) }) {
		t.Errorf("weir %s never said %q:\n%s", strings.Join(args, " "), text, strings.Join(said, "\n"))
	}
	return cmd.ProcessState.ExitCode()
}

func TestInterruptsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	bin := built(t, weirBinary)
	for name, x := range map[string]struct {
		text string
		args []string
	}{
		"demo while it starts": {"starting a JobManager", []string{"demo", "--interval", "200ms"}},
		"demo while it runs":   {"checkpoint 2:", []string{"demo", "--interval", "200ms"}},
		"run":                  {"4 of 4 tasks run", []string{"run", "checkpoint-demo", "--checkpoint-interval", "100ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, env := tempDirFor(t)
			if code := interruptAfter(t, env, x.text, bin, x.args...); code != 130 {
				t.Errorf("exit code %d, want 130", code)
			}
			leftOver(t, dir)
		})
	}
}

func TestRunEndsWithItsJob(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, env := tempDirFor(t)
	_, stderr, err := runWeir(t, exe, []string{env, actAsWeir + "=1"}, "run", "code-panics")
	if exitCode(err) != 1 || !strings.Contains(stderr, "integer divide by zero") {
		t.Errorf("%v\n%s", err, stderr)
	}
	leftOver(t, dir)
	out, stderr, err := runWeir(t, exe, []string{env, actAsWeir + "=1"}, "run", "bounded", "-o", "json")
	if l := lines(t, out); err != nil || len(l) != 2 || l[1]["status"] != rpc.JobFinished.String() {
		t.Errorf("%v\n%s%s", err, out, stderr)
	}
	leftOver(t, dir)
}
