package processes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/weirflow/weir/client"
)

// TaskManagers is how many TaskManagers there are, as in the demo: a job's two counters run
// in one each.
const TaskManagers = 2

// Cluster is a JobManager and TaskManagers. Checkpoints are written to a directory of this
// machine.
type Cluster struct {
	Client *client.Client

	dir     string
	env     []string
	daemons []*exec.Cmd
}

// Start starts the processes, with so many slots for each TaskManager. They see these
// variables, each "NAME=value", besides ours.
func Start(slots int, env ...string) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, env: env}
	if err := c.start(slots); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Checkpoints is the directory of checkpoints.
func (c *Cluster) Checkpoints() string { return filepath.Join(c.dir, "checkpoints") }

func (c *Cluster) start(slots int) error {
	control, err := c.daemon("jobmanager", "--listen", "127.0.0.1:0", "--checkpoint-dir", c.Checkpoints())
	if err != nil {
		return err
	}
	for range TaskManagers {
		_, err := c.daemon("taskmanager", "--jobmanager", control, "--listen", "127.0.0.1:0", "--slots", strconv.Itoa(slots))
		if err != nil {
			return err
		}
	}
	c.Client, err = client.New([]string{control}, client.Options{})
	return err
}

// daemon starts a process and waits until it says where it serves.
func (c *Cluster) daemon(role string, args ...string) (control string, err error) {
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
	cmd.Env = append(os.Environ(), c.env...)
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

// Stop ends the processes, TaskManagers first, and removes what they wrote.
func (c *Cluster) Stop() error {
	var err error
	if c.Client != nil {
		err = c.Client.Close()
	}
	for _, d := range slices.Backward(c.daemons) {
		_ = d.Process.Signal(syscall.SIGTERM)
		_ = d.Wait() // an interrupt is an error to exec
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
