package cli

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
	"syscall"
	"time"

	"github.com/weirflow/weir/internal/group"
)

// process is a daemon that this command started, and stops.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string // file with what it said on standard error
	ended chan struct{}
	err   error // valid once ended is closed
}

// startTimeout bounds how long a daemon may take until it serves.
const startTimeout = 60 * time.Second

// startProcess starts this binary with args and waits until it says that it serves.
// Its log goes to a file in dir. It dies with us, even if we are killed. When it has
// ended, ended is called.
func startProcess(ctx context.Context, g *group.Group, ended func(), exe, dir, name string, args ...string) (*process, Ready, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	logFile, err := os.Create(p.log)
	if err != nil {
		return nil, Ready{}, fmt.Errorf("log of %s: %w", name, err)
	}
	defer logFile.Close()
	p.cmd = exec.Command(exe, append(args, "-o", "json")...)
	p.cmd.Stderr = logFile
	p.cmd.SysProcAttr = dieWithParent()
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, Ready{}, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, Ready{}, fmt.Errorf("start %s: %w", name, err)
	}
	lines := make(chan string, 1)
	err = g.Go("process/"+name, func(context.Context) error {
		scan := bufio.NewScanner(stdout)
		for first := true; scan.Scan(); first = false {
			if first {
				lines <- scan.Text()
			}
		}
		p.err = p.cmd.Wait()
		close(p.ended)
		ended()
		return nil
	})
	if err != nil {
		_ = p.cmd.Process.Kill()
		return nil, Ready{}, errors.Join(err, p.cmd.Wait())
	}
	ready, err := p.awaitReady(ctx, lines)
	return p, ready, err
}

func (p *process) awaitReady(ctx context.Context, lines <-chan string) (r Ready, err error) {
	limit := time.NewTimer(startTimeout)
	defer limit.Stop()
	select {
	case line := <-lines:
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return r, fmt.Errorf("%s said %q instead of where it serves: %w", p.name, line, err)
		}
		return r, nil
	case <-p.ended:
		return r, fmt.Errorf("%s ended before it served: %w\n%s", p.name, p.err, p.tail())
	case <-limit.C:
		return r, fmt.Errorf("%s does not serve after %s; its log: %s\n%s", p.name, startTimeout, p.log, p.tail())
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
}

// tail is the end of the process's log.
func (p *process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
}

// stop asks the process to end, and kills it if it does not by the end of ctx.
func (p *process) stop(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not stop and was killed", p.name)
	}
}
