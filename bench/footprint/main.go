package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/weirflow/weir/bench/figures"
)

const (
	starts  = 5               // of which the median is reported
	settled = 3 * time.Second // of idling, before memory is looked at
	limit   = 60 * time.Second
)

func main() {
	var weir string
	os.Exit(figures.Main(os.Args[1:], os.Stdout, os.Stderr,
		func(flags *flag.FlagSet) { flags.StringVar(&weir, "weir", "bin/weir", "the binary") },
		func() ([]figures.Figure, error) { return measure(weir) }))
}

func measure(weir string) ([]figures.Figure, error) {
	info, err := os.Stat(weir)
	if err != nil {
		return nil, fmt.Errorf("%w: make build makes it", err)
	}
	var times []time.Duration
	var memory int64
	for i := range starts {
		took, pss, err := start(weir, i == starts-1)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
		memory = pss
	}
	slices.Sort(times)
	return []figures.Figure{
		{Name: "footprint/start", Value: times[len(times)/2].Seconds(), Unit: "s", Aim: 1.5, Note: "processes started to RUNNING, median of 5"},
		{Name: "footprint/memory", Value: float64(memory) / 1e6, Unit: "MB", Aim: 150, Note: "PSS of JobManager with etcd and two TaskManagers, job idle"},
		{Name: "footprint/binary", Value: float64(info.Size()) / 1e6, Unit: "MB"},
	}, nil
}

// cluster is the processes of one start.
type cluster struct {
	weir, dir string
	daemons   []*exec.Cmd
}

// start starts a cluster and a job and says how long that took, and then, if wanted,
// how much memory the processes take.
func start(weir string, look bool) (took time.Duration, pss int64, err error) {
	c := &cluster{weir: weir}
	if c.dir, err = os.MkdirTemp("", "weir-footprint-"); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	port, err := freePort()
	if err != nil {
		return 0, 0, err
	}
	control := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	from := time.Now()
	if err := c.start(control); err != nil {
		return 0, 0, err
	}
	if err := c.run(control); err != nil {
		return 0, 0, err
	}
	took = time.Since(from)
	if !look {
		return took, 0, nil
	}
	<-time.After(settled)
	for _, d := range c.daemons {
		n, err := proportional(d.Process.Pid)
		if err != nil {
			return 0, 0, err
		}
		pss += n
	}
	return took, pss, nil
}

// start starts all daemons at once and waits until each says that it serves.
func (c *cluster) start(control string) error {
	ready := make(chan error, 3)
	daemon := func(name string, args ...string) error {
		args = append(args, "--metrics-listen", "127.0.0.1:0", "--data-dir", filepath.Join(c.dir, name), "-o", "json")
		cmd, out, err := c.command(args...)
		if err != nil {
			return err
		}
		c.daemons = append(c.daemons, cmd)
		go func() {
			line, err := bufio.NewReader(out).ReadBytes('\n')
			if err != nil {
				err = fmt.Errorf("%s does not serve: %q: %w", name, line, err)
			}
			ready <- err
		}()
		return nil
	}
	err := daemon("jobmanager", "jobmanager", "--listen", control, "--checkpoint-dir", filepath.Join(c.dir, "checkpoints"))
	for i := range 2 {
		err = errors.Join(err, daemon(fmt.Sprintf("taskmanager-%d", i), "taskmanager", "--jobmanager", control, "--listen", "127.0.0.1:0", "--slots", "2"))
	}
	if err != nil {
		return err
	}
	late := time.After(limit)
	for range c.daemons {
		select {
		case err := <-ready:
			if err != nil {
				return err
			}
		case <-late:
			return fmt.Errorf("the cluster does not serve after %s", limit)
		}
	}
	return nil
}

func (c *cluster) command(args ...string) (*exec.Cmd, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	cmd := exec.Command(c.weir, args...)
	cmd.Stdout, cmd.Stderr = w, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, r, cmd.Start()
}

// run submits a job whose sources have one record and then nothing to do, and waits
// until it runs.
func (c *cluster) run(control string) error {
	if _, err := c.ask(control, "submit", "checkpoint-demo", "--param", "records=1", "--checkpoint-interval", "1h", "--detach"); err != nil {
		return err
	}
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		jobs, err := c.ask(control, "list")
		if err != nil {
			return err
		}
		if bytes.Contains(jobs, []byte(`"RUNNING"`)) {
			return nil
		}
	}
	return fmt.Errorf("the job does not run after %s", limit)
}

func (c *cluster) ask(control string, args ...string) ([]byte, error) {
	out, err := exec.Command(c.weir, append(args, "--jobmanager", control, "-o", "json")...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("weir %s: %w: %s", args[0], err, exit.Stderr)
	}
	if err == nil && !json.Valid(bytes.TrimSpace(out)) && len(bytes.TrimSpace(out)) > 0 && out[0] != '{' && out[0] != '[' {
		return nil, fmt.Errorf("weir %s said %q", args[0], out)
	}
	return out, err
}

// stop ends the daemons, TaskManagers first, and removes what they wrote.
func (c *cluster) stop() error {
	for _, d := range slices.Backward(c.daemons) {
		_ = d.Process.Signal(syscall.SIGTERM)
		_ = d.Wait() // an interrupt is an error to exec
	}
	return os.RemoveAll(c.dir)
}

// freePort finds a port that is free now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// proportional is a process's memory in bytes, with its share of what others map too.
func proportional(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		var kb int64
		if n, _ := fmt.Sscanf(string(line), "Pss: %d kB", &kb); n == 1 {
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("process %d: no Pss", pid)
}
