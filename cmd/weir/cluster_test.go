package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cli"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// patience bounds every wait. Nothing is judged by how long it takes; this is for
// what never comes.
const patience = 90 * time.Second

// daemonProcess is a JobManager or a TaskManager.
type daemonProcess struct {
	name  string
	cmd   *exec.Cmd
	ready cli.Ready
	log   string        // file with its standard error
	ended chan struct{} // closed when it has been waited for
	err   error         // of Wait; valid once ended is closed
}

// cluster is real processes.
type cluster struct {
	t       *testing.T
	ctx     context.Context
	bin     string
	env     []string
	dir     string
	control string // of the JobManager, the same over its restarts
	jm      *daemonProcess
	tms     []*daemonProcess
	starts  int
	client  *client.Client
	// extra are flags for the next daemons.
	extra []string
}

// newCluster starts a JobManager and TaskManagers of two slots each.
func newCluster(t *testing.T, bin string, taskManagers int, env ...string) *cluster {
	t.Helper()
	c := emptyCluster(t, bin, env...)
	c.startJobManager()
	for i := range taskManagers {
		c.startTaskManager(i)
	}
	return c
}

func emptyCluster(t *testing.T, bin string, env ...string) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	c := &cluster{t: t, ctx: ctx, bin: bin, env: env, dir: t.TempDir(), control: "127.0.0.1:0"}
	t.Cleanup(c.close)
	return c
}

// close ends what runs and shows the logs of a test that failed.
func (c *cluster) close() {
	if c.client != nil {
		_ = c.client.Close()
	}
	all := append(slices.Clone(c.tms), c.jm)
	for _, p := range all {
		if p != nil {
			p.kill()
		}
	}
	if !c.t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
	for _, log := range logs {
		c.t.Logf("%s ends with:\n%s", filepath.Base(log), tail(log, 25))
	}
}

func tail(file string, lines int) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

func (c *cluster) checkpoints() string { return filepath.Join(c.dir, "checkpoints") }

// startJobManager starts it, or starts it again with the same data and address.
func (c *cluster) startJobManager(env ...string) {
	c.t.Helper()
	args := []string{"jobmanager", "--listen", c.control, "--data-dir", filepath.Join(c.dir, "jobmanager"), "--checkpoint-dir", c.checkpoints()}
	c.jm = c.start("jobmanager", env, append(args, c.extra...)...)
	if c.control != c.jm.ready.Control {
		c.control = c.jm.ready.Control
		cl, err := client.New([]string{c.control}, client.Options{})
		if err != nil {
			c.t.Fatal(err)
		}
		c.client = cl
	}
}

// startTaskManager starts number i, or starts it again with the same data.
func (c *cluster) startTaskManager(i int, flags ...string) *daemonProcess {
	c.t.Helper()
	name := fmt.Sprintf("taskmanager-%d", i+1)
	args := []string{"taskmanager", "--jobmanager", c.control, "--slots", "2", "--memory", "64mb", "--data-dir", filepath.Join(c.dir, name)}
	p := c.start(name, nil, append(args, flags...)...)
	for len(c.tms) <= i {
		c.tms = append(c.tms, nil)
	}
	c.tms[i] = p
	return p
}

// start starts a daemon and waits until it says where it serves.
func (c *cluster) start(name string, env []string, args ...string) *daemonProcess {
	c.t.Helper()
	p, err := c.tryStart(name, env, args...)
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", name, err, tail(p.log, 20))
	}
	return p
}

func (c *cluster) tryStart(name string, env []string, args ...string) (*daemonProcess, error) {
	c.starts++
	p := &daemonProcess{name: name, log: filepath.Join(c.dir, fmt.Sprintf("%02d-%s.log", c.starts, name)), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return p, err
	}
	defer log.Close()
	p.cmd = exec.Command(c.bin, append(args, "-o", "json")...)
	p.cmd.Env = append(append(os.Environ(), c.env...), env...)
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = ownGroup()
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return p, err
	}
	if err := p.cmd.Start(); err != nil {
		return p, err
	}
	first := make(chan []byte, 1)
	go func() {
		scan := bufio.NewScanner(stdout)
		for n := 0; scan.Scan(); n++ {
			if n == 0 {
				first <- slices.Clone(scan.Bytes())
			}
		}
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	select {
	case line := <-first:
		return p, json.Unmarshal(line, &p.ready)
	case <-p.ended:
		return p, fmt.Errorf("ended before it served: %w", p.err)
	case <-time.After(patience):
		p.kill()
		return p, errors.New("does not serve")
	}
}

// kill is kill -9; it returns when the process is gone.
func (p *daemonProcess) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// await returns when the process has ended by itself.
func (p *daemonProcess) await(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%s does not end", p.name)
	}
}

// interrupt sends a signal and returns the exit code.
func (p *daemonProcess) interrupt(t *testing.T, s syscall.Signal) int {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	p.await(t)
	return p.cmd.ProcessState.ExitCode()
}

// killed says whether the process ended by SIGKILL.
func (p *daemonProcess) killed() bool {
	ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// submit submits checkpoint-demo with checkpoints every 300 ms.
func (c *cluster) submit(r rpc.SubmitRequest) string {
	c.t.Helper()
	id, err := c.trySubmit(r)
	if err != nil {
		c.t.Fatalf("submit: %v", err)
	}
	return id
}

func (c *cluster) trySubmit(r rpc.SubmitRequest) (string, error) {
	if r.Entrypoint == "" {
		r.Entrypoint = "checkpoint-demo"
	}
	options := map[string]string{"execution.checkpointing.interval": "300ms", "restart-strategy.fixed-delay.delay": "100ms"}
	for k, v := range r.Options {
		options[k] = v
	}
	r.Options = options
	reply, err := c.client.Submit(c.ctx, r)
	return reply.Job.String(), err
}

// await polls the job until done says so.
func (c *cluster) await(job, what string, done func(rpc.JobDetail) bool) rpc.JobDetail {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	d, err := client.Await(ctx, c.client, job, func(d rpc.JobDetail) bool {
		return done(d) || d.Status.Final()
	})
	if err != nil || !done(d) {
		failure := "none"
		if d.Failure != nil {
			failure = d.Failure.Error()
		}
		c.t.Fatalf("waiting until %s: %v; job is %s %q, %d of %d tasks run, %d restarts, last checkpoint %d, failure: %s",
			what, err, d.Status, d.Detail, d.JobSummary.Running, d.JobSummary.Tasks, d.Restarts, d.LastCheckpoint, failure)
	}
	return d
}

// awaitCheckpoint waits for a checkpoint after the given one.
func (c *cluster) awaitCheckpoint(job string, after weir.CheckpointID) weir.CheckpointID {
	c.t.Helper()
	return c.await(job, fmt.Sprintf("a checkpoint after %d is complete", after),
		func(d rpc.JobDetail) bool { return d.LastCheckpoint > after }).LastCheckpoint
}

// weir runs a client command and returns what it printed; a failure of the command
// is the error.
func (c *cluster) weir(args ...string) (stdout, stderr string, err error) {
	c.t.Helper()
	return runWeir(c.t, c.bin, c.env, append([]string{"--jobmanager", c.control}, args...)...)
}

// runWeir runs a command to its end.
func runWeir(t *testing.T, bin string, env []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("weir %s does not end\n%s%s", strings.Join(args, " "), out.String(), errs.String())
	}
	return out.String(), errs.String(), err
}

// rounds is how many rounds of kills are played: WEIR_ROUNDS, else one.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("WEIR_ROUNDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("WEIR_ROUNDS=%q is not a number of rounds", text)
	}
	return n
}

// wait waits, for moments that are drawn at random.
func wait(d time.Duration) { <-time.After(d) }
