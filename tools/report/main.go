// Command report runs go test commands one after the other, each as
//
//	[NAME=VALUE ...] go test -json ...
//
// separated by "--", and prints what people and programs want to read of them: the
// output of tests that failed as it comes, then the names of the tests that were
// skipped and "SKIPPED n" with their number, then go test's own closing lines, last.
// Its exit code is 1 if a command failed. All commands run, whatever became of those
// before.
//
//	cd tools && go run ./report -C .. go test -json ./... -- go test -json -race ./x
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	args, dir := os.Args[1:], "."
	if len(args) > 1 && args[0] == "-C" {
		dir, args = args[1], args[2:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: report [-C DIR] [NAME=VALUE ...] go test -json ... [-- ...]")
		os.Exit(2)
	}
	r := newReport(os.Stdout)
	for _, command := range split(args) {
		r.run(dir, command)
	}
	r.close()
	if r.failed {
		os.Exit(1)
	}
}

// split cuts the arguments at "--".
func split(args []string) [][]string {
	var commands [][]string
	for {
		i := slices.Index(args, "--")
		if i < 0 {
			return append(commands, args)
		}
		commands = append(commands, args[:i])
		args = args[i+1:]
	}
}

// event is a line of go test -json (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Elapsed    float64
	Output     string
}

// report is what the commands so far have said.
type report struct {
	out     io.Writer
	pending map[string][]string // output of tests that have not ended, by package and test
	skipped []string
	closing []string // of packages, in the order in which they ended
	failed  bool
}

func newReport(out io.Writer) *report {
	return &report{out: out, pending: make(map[string][]string)}
}

// run executes one command and reads its events.
func (r *report) run(dir string, command []string) {
	start, earlier := time.Now(), r.failed
	r.failed = false
	defer func() { r.failed = r.failed || earlier }()
	fmt.Fprintf(r.out, "== %s\n", strings.Join(command, " "))
	env := os.Environ()
	for len(command) > 1 && strings.Contains(command[0], "=") {
		env, command = append(env, command[0]), command[1:]
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.fail(fmt.Sprintf("FAIL\t%s: %v\n", strings.Join(command, " "), err))
		return
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil && !r.failed {
		r.fail(fmt.Sprintf("FAIL\t%s: %v\n", strings.Join(command, " "), err))
	}
	fmt.Fprintf(r.out, "== took %s\n", time.Since(start).Round(time.Second/10))
}

func (r *report) fail(closing string) {
	r.failed = true
	r.closing = append(r.closing, closing)
}

// line takes one line of output; what is no event is passed on.
func (r *report) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		_, _ = r.out.Write(line)
		return
	}
	r.event(e)
}

func (r *report) event(e event) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if e.Test == "" && closes(e) {
			r.closing = append(r.closing, e.Output)
			return
		}
		if !strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT, NAME
			r.pending[key] = append(r.pending[key], e.Output)
		}
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, e.Package+" "+e.Test)
		}
		delete(r.pending, key)
	case "pass":
		delete(r.pending, key)
		if e.Test == "" && e.Elapsed >= 10 {
			fmt.Fprintf(r.out, "   %s passed after %.0fs\n", e.Package, e.Elapsed)
		}
	case "fail":
		r.failed = true
		for _, text := range r.pending[key] {
			fmt.Fprint(r.out, text)
		}
		delete(r.pending, key)
	}
}

// closes says whether a package's output is one of go test's closing lines.
func closes(e event) bool {
	for _, start := range []string{"ok  \t", "FAIL\t", "?   \t", "\t"} {
		if strings.HasPrefix(e.Output, start) && strings.Contains(e.Output, e.Package) {
			return true
		}
	}
	return false
}

// close prints what comes last.
func (r *report) close() {
	for _, name := range r.skipped {
		fmt.Fprintf(r.out, "skipped: %s\n", name)
	}
	fmt.Fprintf(r.out, "SKIPPED %d\n", len(r.skipped))
	for _, line := range r.closing {
		fmt.Fprint(r.out, line)
	}
}
