package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// managers is how many TaskManagers there are, as in the demo: a job's two counters run
// in one each.
const managers = 2

// limit is how long a daemon or a job may take to start or to end.
const limit = 60 * time.Second

// cluster is real processes: this binary again, as a JobManager with its own etcd and as
// TaskManagers. Checkpoints are written to a directory of this machine.
type cluster struct {
	dir     string
	daemons []*exec.Cmd
	client  *client.Client
	store   *fs.Store // of checkpoints
}

func (c *cluster) checkpoints() string { return filepath.Join(c.dir, "checkpoints") }
func (c *cluster) traces() string      { return filepath.Join(c.dir, "traces") }

// startCluster starts the processes, with so many slots for each TaskManager.
func startCluster(slots int) (*cluster, error) {
	dir, err := os.MkdirTemp("", "weir-unaligned-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir}
	if err := c.start(slots); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) start(slots int) error {
	if err := os.Mkdir(c.traces(), 0o700); err != nil {
		return err
	}
	control, err := c.daemon("jobmanager", "--listen", "127.0.0.1:0", "--checkpoint-dir", c.checkpoints())
	if err != nil {
		return err
	}
	for range managers {
		_, err := c.daemon("taskmanager", "--jobmanager", control, "--listen", "127.0.0.1:0", "--slots", fmt.Sprint(slots))
		if err != nil {
			return err
		}
	}
	if c.store, err = fs.OpenExisting(c.checkpoints()); err != nil {
		return err
	}
	c.client, err = client.New([]string{control}, client.Options{})
	return err
}

// daemon starts a process and waits until it says where it serves.
func (c *cluster) daemon(role string, args ...string) (control string, err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s-%d", role, len(c.daemons))
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	args = append(args, "--metrics-listen", "127.0.0.1:0", "--data-dir", filepath.Join(c.dir, name), "-o", "json")
	cmd := exec.Command(exe, append([]string{role}, args...)...)
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), traceDir+"="+c.traces())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	c.daemons = append(c.daemons, cmd)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct {
		Control string `json:"control"`
	}
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		return "", fmt.Errorf("%s does not serve: %q: %w\n%s", name, line, err, said)
	}
	return ready.Control, nil
}

// submit starts a row's job and waits until it runs.
func (c *cluster) submit(ctx context.Context, r *row) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := c.client.Submit(ctx, rpc.SubmitRequest{Entrypoint: jobName, Name: r.name, Params: r.params(), Options: r.options()})
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	r.job = reply.Job
	if _, err := client.Await(ctx, c.client, r.job.String(), client.Running); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}

// cancel ends a row's job.
func (c *cluster) cancel(ctx context.Context, r *row) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := c.client.Cancel(ctx, r.job.String()); err != nil {
		return err
	}
	_, err := client.Await(ctx, c.client, r.job.String(), client.Ended)
	return err
}

// stop ends the processes, TaskManagers first, and removes what they wrote.
func (c *cluster) stop() error {
	var err error
	if c.client != nil {
		err = c.client.Close()
	}
	for _, d := range slices.Backward(c.daemons) {
		_ = d.Process.Signal(syscall.SIGTERM)
		_ = d.Wait() // an interrupt is an error to exec
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
