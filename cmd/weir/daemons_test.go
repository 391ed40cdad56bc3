package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// failsToStart runs a daemon that must not start, and checks what it says.
func failsToStart(t *testing.T, bin string, code int, says []string, args ...string) {
	t.Helper()
	_, stderr, err := runWeir(t, bin, nil, args...)
	if got := exitCode(err); got != code {
		t.Errorf("weir %s: exit code %d, want %d", strings.Join(args, " "), got, code)
	}
	for _, want := range says {
		if !strings.Contains(stderr, want) {
			t.Errorf("weir %s: error does not say %q:\n%s", strings.Join(args, " "), want, stderr)
		}
	}
}

func TestDaemonsThatCannotStartSayWhy(t *testing.T) {
	t.Parallel()
	bin, dir := built(t, weirBinary), t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().String()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	jm := func(args ...string) []string {
		return append([]string{"jobmanager", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "jm"), "--checkpoint-dir", filepath.Join(dir, "cp")}, args...)
	}
	tm := func(args ...string) []string {
		return append([]string{"taskmanager", "--jobmanager", "127.0.0.1:1", "--data-dir", filepath.Join(dir, "tm")}, args...)
	}
	inUse := []string{port, "address already in use", "port 0 for any free one"}
	loopback := []string{"0.0.0.0:0", "not encrypted", "--insecure"}
	for _, x := range []struct {
		code int
		says []string
		args []string
	}{
		{1, append(inUse, "--listen"), jm("--listen", port)},
		{1, append(inUse, "--metrics-listen"), jm("--metrics-listen", port)},
		{1, append(inUse, "--listen"), tm("--listen", port)},
		{1, append(inUse, "--metrics-listen"), tm("--metrics-listen", port)},
		{2, append(loopback, "--listen"), jm("--listen", "0.0.0.0:0")},
		{2, append(loopback, "--metrics-listen"), jm("--metrics-listen", "0.0.0.0:0")},
		{2, append(loopback, "--listen"), tm("--listen", "0.0.0.0:0")},
		{2, append(loopback, "--metrics-listen"), tm("--metrics-listen", "0.0.0.0:0")},
		{2, []string{"--listen", "here", "host:port"}, jm("--listen", "here")},
		{2, []string{"--advertise", "is no address"}, jm("--advertise", "http://a/b")},
		{1, []string{"--checkpoint-dir", file, "not a directory"}, jm("--checkpoint-dir", filepath.Join(file, "cp"))},
		{1, []string{"--data-dir", file, "not a directory"}, jm("--data-dir", filepath.Join(file, "jm"))},
		{1, []string{"--data-dir", file, "not a directory"}, tm("--data-dir", filepath.Join(file, "tm"))},
		{1, []string{"--checkpoint-dir", file, "not a directory"}, tm("--checkpoint-dir", filepath.Join(file, "cp"))},
		{2, []string{"exactly one", "--etcd-endpoints"}, jm("--jobmanager", "127.0.0.1:1")},
		{2, []string{"unknown flag: --slot"}, tm("--slot", "2")},
		{2, []string{"--slots is 0"}, tm("--slots", "0")},
		{2, []string{"--slots is 1000000", "CPUs"}, tm("--slots", "1000000")},
		{2, []string{"--memory is 102398976 MiB"}, tm("--memory", "99999gb")},
		{2, []string{`"foo:bar" is no address`, "host:port"}, tm("--jobmanager", "foo:bar")},
		{2, []string{"--memory", `"much"`, "64mb"}, tm("--memory", "much")},
		{2, []string{"memory", "1024 bytes"}, tm("--memory", "1kb")},
		{2, []string{`--set`, `"state.backend.typo"`, `"state.backend.type"`, "docs/config.md"}, jm("--set", "state.backend.typo=heap")},
	} {
		failsToStart(t, bin, x.code, x.says, x.args...)
	}
}

func TestOneProcessPerDataDirectory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 2)
	v := c.startVictim(0)
	data := filepath.Join(c.dir, "jobmanager")
	failsToStart(t, c.bin, 1, []string{"--data-dir", data, "in use by another process"},
		"jobmanager", "--listen", "127.0.0.1:0", "--data-dir", data, "--checkpoint-dir", c.checkpoints())
	data = filepath.Join(c.dir, "taskmanager-1")
	failsToStart(t, c.bin, 1, []string{"data directory", data, "in use by another process"},
		"taskmanager", "--jobmanager", c.control, "--data-dir", data)
	v.unharmed()
}

func TestListeningBeyondLoopbackIsPossible(t *testing.T) {
	t.Parallel()
	c := emptyCluster(t, built(t, weirBinary))
	c.extra = []string{"--insecure", "--advertise", "127.0.0.1", "--metrics-listen", "0.0.0.0:0"}
	c.control = "0.0.0.0:0"
	c.startJobManager()
	if host, port, err := net.SplitHostPort(c.jm.ready.Control); err != nil || host != "127.0.0.1" || port == "0" {
		t.Errorf("advertised is %q", c.jm.ready.Control)
	}
	if _, port, err := net.SplitHostPort(c.jm.ready.Metrics); err != nil || port == "0" {
		t.Errorf("metrics are at %q", c.jm.ready.Metrics)
	}
}

func TestHealthIsServed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 0)
	cc, err := grpc.NewClient(c.control, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	r, err := grpc_health_v1.NewHealthClient(cc).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", r, err)
	}
}

func TestTaskManagerThatIsToldToEndHandsItsTasksOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 2)
	job := c.submit(rpc.SubmitRequest{Params: map[string]string{"parallelism": "2"}})
	d := c.await(job, "it runs", client.Running)
	c.startTaskManager(2) // with the slots that the other one takes away
	before := c.awaitCheckpoint(job, 0)
	i := 0
	if !strings.HasSuffix(d.Tasks[0].TaskManager, c.tms[i].ready.ID[:8]) {
		i = 1
	}
	if code := c.tms[i].interrupt(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	d = c.await(job, "it runs elsewhere", func(d rpc.JobDetail) bool { return d.Restarts > 0 && client.Running(d) })
	for _, task := range d.Tasks {
		if strings.HasSuffix(task.TaskManager, c.tms[i].ready.ID[:8]) {
			t.Errorf("%s[%d] runs on the TaskManager that has ended", task.Vertex, task.Attempt.Subtask)
		}
	}
	l, err := c.client.Checkpoints(c.ctx, job)
	if err != nil || l.Restored < before {
		t.Errorf("restored from %d, want at least %d: %v", l.Restored, before, err)
	}
	c.awaitCheckpoint(job, l.Restored)
	c.auditNewest(job)
}

func TestDaemonsEndOnSignals(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		c := newCluster(t, built(t, weirBinary), 1)
		job := c.submit(rpc.SubmitRequest{Params: map[string]string{"parallelism": "2"}})
		c.await(job, "it runs", client.Running)
		if code := c.tms[0].interrupt(t, s); code != 0 {
			t.Errorf("TaskManager: exit code %d after %s", code, s)
		}
		if code := c.jm.interrupt(t, s); code != 0 {
			t.Errorf("JobManager: exit code %d after %s", code, s)
		}
	}
}

// A checkpoint directory that is full fails checkpoints, and nothing else: daemons that
// were killed come back meanwhile, with their jobs. When there is room again checkpoints
// go on.
func TestFullCheckpointDirectoryFailsCheckpointsOnly(t *testing.T) {
	t.Parallel()
	c := emptyCluster(t, built(t, weirBinary))
	if err := os.Mkdir(c.checkpoints(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := mountSmall(c.checkpoints(), 256<<10); err != nil {
		t.Logf("no small file system here (%v): minicluster's test of a store that fails must do", err)
		return
	}
	t.Cleanup(func() { _ = unmount(c.checkpoints()) })
	c.startJobManager()
	c.startTaskManager(0)
	job := c.submit(rpc.SubmitRequest{})
	c.await(job, "it runs", client.Running)
	c.awaitCheckpoint(job, 0)
	filler := filepath.Join(c.checkpoints(), "filler")
	fill(t, filler)
	info := c.awaitFailedCheckpoint(job, 0)
	if !strings.Contains(info.Message, "no space left on device") {
		t.Errorf("checkpoint %d failed with %s: %s", info.ID, info.Reason, info.Message)
	}
	if r := c.attempt("submit", "checkpoint-demo", "--name", "other"); r.code != 1 || !strings.Contains(r.stderr, "no space left") || !strings.Contains(r.stderr, "hint: is the checkpoint directory writable") {
		t.Errorf("submit: exit code %d: %s", r.code, r.stderr)
	}
	if d, err := c.client.Get(c.ctx, job); err != nil || d.Restarts != 0 {
		t.Errorf("%d restarts, %v", d.Restarts, err)
	}
	c.jm.kill()
	c.startJobManager()
	c.await(job, "it runs again", client.Running)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.awaitCheckpoint(job, info.ID)
}

// A data directory without room ends the JobManager with what to do and without etcd's
// panic; when there is room again, it resumes the job from its last checkpoint.
func TestFullDataDirectoryEndsTheJobManagerWithAClearError(t *testing.T) {
	t.Parallel()
	c := emptyCluster(t, built(t, weirBinary))
	data := filepath.Join(c.dir, "jobmanager")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := mountSmall(data, 64<<20); err != nil {
		t.Logf("no small file system here (%v): etcdserver's tests of room must do", err)
		return
	}
	t.Cleanup(func() { _ = unmount(data) })
	c.startJobManager()
	c.startTaskManager(0)
	job := c.submit(rpc.SubmitRequest{})
	before := c.awaitCheckpoint(job, 0)
	filler := filepath.Join(data, "filler")
	fill(t, filler)
	c.jm.await(t)
	log := tail(c.jm.log, 1000)
	for _, want := range []string{"no space left for the data directory", "make room", "jobs resume"} {
		if !strings.Contains(log, want) {
			t.Errorf("the JobManager's log does not say %q:\n%s", want, log)
		}
	}
	if code := c.jm.cmd.ProcessState.ExitCode(); code != 1 || strings.Contains(log, "goroutine ") || strings.Contains(log, "task failed") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
	failsToStart(t, c.bin, 1, []string{"no space left for the data directory"},
		"jobmanager", "--listen", "127.0.0.1:0", "--data-dir", data, "--checkpoint-dir", c.checkpoints())
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.startJobManager()
	c.awaitCheckpoint(job, before)
	c.auditNewest(job)
}

// fill writes a file until there is no room.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for b := make([]byte, 1024); err == nil; {
		_, err = f.Write(b)
	}
}

// awaitFailedCheckpoint waits for a failed checkpoint after the given one.
func (c *cluster) awaitFailedCheckpoint(job string, after weir.CheckpointID) (failed rpc.CheckpointInfo) {
	c.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		l, err := c.client.Checkpoints(c.ctx, job)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, info := range l.Recent {
			if info.Status == rpc.CheckpointFailed && info.ID > after {
				return info
			}
		}
		select {
		case <-tick.C:
		case <-limit:
			c.t.Fatal("no checkpoint fails")
		}
	}
}

// State that a TaskManager would write where nobody finds it fails the checkpoint.
func TestTaskManagerWithAnotherDirectoryCompletesNoCheckpoint(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 0)
	c.startTaskManager(0, "--checkpoint-dir", filepath.Join(c.dir, "elsewhere"))
	job := c.submit(rpc.SubmitRequest{Params: map[string]string{"keys": "5000", "size": "50", "rate": "20000"}})
	info := c.awaitFailedCheckpoint(job, 0)
	if !strings.Contains(info.Message, "the JobManager's checkpoint directory is not here") || !strings.Contains(info.Message, "--checkpoint-dir") {
		t.Errorf("checkpoint %d failed with %s: %q", info.ID, info.Reason, info.Message)
	}
}
