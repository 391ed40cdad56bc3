package side

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/weirflow/weir/bench/pairs"
)

// Process is one side, running.
type Process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	units int
}

// Start starts this binary with arguments; each sample is to be of so many units.
func Start(units int, args ...string) *Process {
	exe, err := os.Executable()
	must(err)
	p := &Process{cmd: exec.Command(exe, args...), units: units}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.in, err = p.cmd.StdinPipe()
	must(err)
	out, err := p.cmd.StdoutPipe()
	must(err)
	p.out = bufio.NewScanner(out)
	must(p.cmd.Start())
	return p
}

// Sample asks for one sample.
func (p *Process) Sample() pairs.Sample {
	_, err := fmt.Fprintln(p.in, p.units)
	must(err)
	var s pairs.Sample
	p.Read(&s)
	return s
}

// Read reads a line of JSON that the process says.
func (p *Process) Read(v any) {
	if !p.out.Scan() {
		panic(fmt.Errorf("%v ended: %w", p.cmd.Args, p.cmd.Wait()))
	}
	must(json.Unmarshal(p.out.Bytes(), v))
}

// Stop ends the process: its standard input ends, and it leaves.
func (p *Process) Stop() {
	must(p.in.Close())
	must(p.cmd.Wait())
}

// Serve answers requests for samples until in ends.
func Serve(in io.Reader, out io.Writer, sample func(units int) pairs.Sample) {
	answers := json.NewEncoder(out)
	for {
		var units int
		if _, err := fmt.Fscanln(in, &units); err != nil {
			return
		}
		must(answers.Encode(sample(units)))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
