package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/weirflow/weir/bench/pairs"
)

// child is the sending process of a side. It dies with its parent.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	cpu time.Duration // that the last answer took
}

func startChild(args ...string) *child {
	exe, err := os.Executable()
	must(err)
	cmd := exec.Command(exe, append([]string{"sender"}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	must(err)
	out, err := cmd.StdoutPipe()
	must(err)
	must(cmd.Start())
	return &child{cmd: cmd, in: in, out: bufio.NewReader(out)}
}

// ask asks for units; answer waits until the child has sent them.
func (c *child) ask(units int) {
	_, err := fmt.Fprintln(c.in, units)
	must(err)
}

// stop lets the child end.
func (c *child) stop() {
	must(c.in.Close())
	must(c.cmd.Wait())
}

func (c *child) answer() { c.cpu = 0; c.read(&c.cpu) }

// said is a child's answer: the CPU time it used.
func said(before time.Duration) { fmt.Println(int64(pairs.ProcessCPU() - before)) }

// read reads a line of JSON.
func (c *child) read(v any) {
	line, err := c.out.ReadBytes('\n')
	must(err)
	must(json.Unmarshal(line, v))
}
