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

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/rpc"
)

// managers is how many TaskManagers there are, as in the demo.
const managers = 2

// limit is how long a daemon, a job or a checkpoint may take.
const limit = time.Minute

// cluster is real processes: this binary again, as a JobManager with its own etcd and as
// TaskManagers. Checkpoints are written to a directory of this machine.
type cluster struct {
	dir     string
	daemons []*exec.Cmd
	client  *client.Client
	job     weir.JobID
}

func (c *cluster) checkpoints() string { return filepath.Join(c.dir, "checkpoints") }

// startCluster starts the processes and the demo's job.
func startCluster(ctx context.Context) (*cluster, error) {
	dir, err := os.MkdirTemp("", "weir-checkpoint-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	control, err := c.daemon("jobmanager", "--listen", "127.0.0.1:0", "--checkpoint-dir", c.checkpoints())
	if err != nil {
		return err
	}
	for range managers {
		if _, err := c.daemon("taskmanager", "--jobmanager", control, "--listen", "127.0.0.1:0", "--slots", "1"); err != nil {
			return err
		}
	}
	if c.client, err = client.New([]string{control}, client.Options{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := c.client.Submit(ctx, rpc.SubmitRequest{Entrypoint: checkpointdemo.Name})
	if err != nil {
		return err
	}
	c.job = reply.Job
	_, err = client.Await(ctx, c.client, c.job.String(), client.Running)
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

// checkpoint takes one and returns its statistics.
func (c *cluster) checkpoint(ctx context.Context, request string) (rpc.CheckpointInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := c.client.TakeSnapshot(ctx, rpc.SnapshotRequest{Job: c.job.String(), RequestID: request, Kind: weir.Checkpoint})
	if err != nil {
		return rpc.CheckpointInfo{}, err
	}
	l, err := c.client.Checkpoints(ctx, c.job.String())
	if err != nil {
		return rpc.CheckpointInfo{}, err
	}
	for _, info := range l.Recent {
		if info.ID == reply.Checkpoint {
			return info, nil
		}
	}
	return rpc.CheckpointInfo{}, fmt.Errorf("checkpoint %d has no statistics", reply.Checkpoint)
}

// metadata is the size of a checkpoint's _metadata.
func (c *cluster) metadata(info rpc.CheckpointInfo) (int, error) {
	f, err := os.Stat(filepath.Join(info.Path, "_metadata"))
	if err != nil {
		return 0, err
	}
	return int(f.Size()), nil
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
