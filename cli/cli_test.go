package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// fake is a cluster that has one job, whose details come one after the other.
type fake struct {
	rpc.ClientGateway
	request rpc.SubmitRequest
	details []rpc.JobDetail
	stopped bool
}

func (f *fake) Submit(_ context.Context, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	f.request = r
	return rpc.SubmitReply{Job: weir.JobID{1}, Name: r.Entrypoint}, nil
}

func (f *fake) Get(context.Context, string) (rpc.JobDetail, error) {
	d := f.details[0]
	if len(f.details) > 1 {
		f.details = f.details[1:]
	}
	return d, nil
}

// command runs one with roles that record what they are asked for.
type command struct {
	roles            Roles
	stdout, stderr   bytes.Buffer
	jobManager       JobManagerOptions
	taskManager      TaskManagerOptions
	local            LocalOptions
	cluster          *fake
	terminal         bool
	readyJobManager  Ready
	readyTaskManager Ready
}

func newCommand() *command {
	c := &command{cluster: &fake{}}
	c.roles = Roles{
		JobManager: func(_ context.Context, o JobManagerOptions, ready func(Ready)) error {
			c.jobManager = o
			ready(c.readyJobManager)
			return nil
		},
		TaskManager: func(_ context.Context, o TaskManagerOptions, ready func(Ready)) error {
			c.taskManager = o
			ready(c.readyTaskManager)
			return nil
		},
		Local: func(_ context.Context, o LocalOptions) (rpc.ClientGateway, func(context.Context) error, error) {
			c.local = o
			return c.cluster, func(context.Context) error { c.cluster.stopped = true; return nil }, nil
		},
	}
	return c
}

func (c *command) run(ctx context.Context, args ...string) int {
	return Main(ctx, c.roles, Streams{Out: &c.stdout, Err: &c.stderr, Terminal: c.terminal, Width: 40}, args)
}

func TestFlagsOfTheDaemonsReachThem(t *testing.T) {
	t.Parallel()
	c := newCommand()
	c.readyJobManager = Ready{Role: "jobmanager", Control: "127.0.0.1:1", Metrics: "127.0.0.1:2", CheckpointDir: "/c"}
	code := c.run(t.Context(), "jobmanager", "--listen", "a:1", "--advertise", "b", "--metrics-listen", "c:2", "--data-dir", "d",
		"--checkpoint-dir", "e", "--cluster-id", "f", "--etcd-endpoints", "g,h", "--set", "k=v", "--set", "l=w=x", "--insecure")
	o := c.jobManager
	if code != ExitOK || o.Listen != "a:1" || o.Advertise != "b" || o.MetricsListen != "c:2" || o.DataDir != "d" || o.CheckpointDir != "e" ||
		o.ClusterID != "f" || !slices.Equal(o.EtcdEndpoints, []string{"g", "h"}) || o.Defaults["k"] != "v" || o.Defaults["l"] != "w=x" || !o.Insecure {
		t.Errorf("exit code %d, %+v\n%s", code, o, c.stderr.String())
	}
	if got := c.stdout.String(); got != "jobmanager ready  control 127.0.0.1:1  metrics 127.0.0.1:2  checkpoints /c\n" {
		t.Errorf("said %q", got)
	}
	c = newCommand()
	c.readyTaskManager = Ready{Role: "taskmanager", Data: "127.0.0.1:3", ID: "12"}
	code = c.run(t.Context(), "taskmanager", "--jobmanager", "a:1,b:2", "--listen", "c:3", "--advertise", "d", "--metrics-listen", "", "--slots", "3",
		"--memory", "64mb", "--data-dir", "e", "--checkpoint-dir", "f", "--insecure", "-o", "json")
	p := c.taskManager
	if code != ExitOK || !slices.Equal(p.JobManagers, []string{"a:1", "b:2"}) || p.Listen != "c:3" || p.Advertise != "d" || p.MetricsListen != "" ||
		p.Slots != 3 || p.Memory != 64<<20 || p.DataDir != "e" || p.CheckpointDir != "f" || !p.Insecure {
		t.Errorf("exit code %d, %+v\n%s", code, p, c.stderr.String())
	}
	var r Ready
	if err := json.Unmarshal(c.stdout.Bytes(), &r); err != nil || r != c.readyTaskManager {
		t.Errorf("said %q: %v", c.stdout.String(), err)
	}
}

func TestFlagsOfTheManifestExist(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile("../deploy/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, part := range strings.Split(string(manifest), "args:\n")[1:] {
		var args []string
		for line := range strings.Lines(part) {
			arg, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if !ok {
				break
			}
			args = append(args, arg)
		}
		c := newCommand()
		if code := c.run(t.Context(), args...); code != ExitOK {
			t.Errorf("weir %s: %s", strings.Join(args, " "), c.stderr.String())
		}
		checked++
	}
	if checked != 2 {
		t.Errorf("%d commands in the manifest, want 2", checked)
	}
}

func TestSubmissionIsWhatTheFlagsSay(t *testing.T) {
	t.Parallel()
	c := newCommand()
	c.cluster.details = []rpc.JobDetail{{JobSummary: rpc.JobSummary{Status: rpc.JobFinished}}}
	code := c.run(t.Context(), "run", "count", "--param", "rate=10", "--param", "text=a=b", "--set", "x.y=z", "--parallelism", "3",
		"--checkpoint-interval", "1500ms", "--name", "n", "--checkpoint-dir", "/d")
	r := c.cluster.request
	if code != ExitOK || r.Entrypoint != "count" || r.Params["rate"] != "10" || r.Params["text"] != "a=b" || r.Options["x.y"] != "z" ||
		r.Options["execution.checkpointing.interval"] != "1.5s" || r.Parallelism != 3 || r.Name != "n" || c.local.CheckpointDir != "/d" || !c.cluster.stopped {
		t.Errorf("exit code %d: %+v %+v\n%s", code, r, c.local, c.stderr.String())
	}
	for from, want := range map[string]string{"/kept/job/chk-3/_metadata": "/kept/job/chk-3/_metadata", "kept/job/chk-3": abs(t, "kept/job/chk-3")} {
		c = newCommand()
		c.cluster.details = []rpc.JobDetail{{JobSummary: rpc.JobSummary{Status: rpc.JobFinished}}}
		if code := c.run(t.Context(), "run", "count", "--from", from); code != ExitOK || c.local.CheckpointDir != "" || c.cluster.request.From != want {
			t.Errorf("exit code %d: from %q, checkpoints in %q", code, c.cluster.request.From, c.local.CheckpointDir)
		}
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	a, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWrongCallsAreUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"nosuch"}, {"list", "extra"}, {"submit"}, {"submit", "a", "b"}, {"run", "a", "--param", "x"}, {"run", "a", "--param", "=1"},
		{"run", "a", "--param", "x=1", "--param", "x=2"}, {"run", "a", "--set", "y"}, {"run", "a", "--nosuch"}, {"run", "a", "--parallelism", "many"},
		{"run", "a", "--parallelism", "-2"}, {"run", "a", "--checkpoint-interval", "-1s"}, {"list", "-o", "yaml"},
		{"taskmanager", "--slots", "0"}, {"taskmanager", "--memory", "lots"}, {"jobmanager", "--jobmanager", "a:1"}, {"demo", "--mode", "x"},
		{"checkpoint", "interval"}, {"checkpoint", "interval", "a", "b", "c"}, {"checkpoint", "interval", "a", "-5s"}, {"checkpoint", "interval", "a", "soon"},
	} {
		c := newCommand()
		if code := c.run(t.Context(), args...); code != ExitUsage || !strings.HasPrefix(c.stderr.String(), "weir: ") || !strings.Contains(c.stderr.String(), "hint: ") {
			t.Errorf("weir %s: exit code %d, %q", strings.Join(args, " "), code, c.stderr.String())
		}
	}
}

func TestFailedJobIsAFailedCommand(t *testing.T) {
	t.Parallel()
	c := newCommand()
	failure := &weir.Failure{Operator: "divide", Message: "division by zero", Subtask: 1}
	c.cluster.details = []rpc.JobDetail{
		{JobSummary: rpc.JobSummary{Name: "j", Status: rpc.JobRunning, Tasks: 2, Running: 2}},
		{JobSummary: rpc.JobSummary{Name: "j", Status: rpc.JobFailed}, Failure: failure},
	}
	if code := c.run(t.Context(), "run", "j"); code != ExitFailure {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"2 of 2 tasks run", "job j is FAILED", "divide", "division by zero"} {
		if !strings.Contains(c.stderr.String(), want) {
			t.Errorf("does not say %q:\n%s", want, c.stderr.String())
		}
	}
}

func TestInterruptEndsARun(t *testing.T) {
	t.Parallel()
	c := newCommand()
	c.cluster.details = []rpc.JobDetail{{JobSummary: rpc.JobSummary{Status: rpc.JobRunning}}}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("interrupted: %w", context.Canceled))
	if code := c.run(ctx, "run", "j"); code != ExitFailure || !c.cluster.stopped || !strings.HasSuffix(c.stderr.String(), "\nweir: interrupted\n") {
		t.Errorf("exit code %d, stopped %t, %q", code, c.cluster.stopped, c.stderr.String())
	}
}

func TestErrorsCarryTheirHint(t *testing.T) {
	t.Parallel()
	var c command
	a := &app{streams: Streams{Err: &c.stderr}}
	a.report(fmt.Errorf("mode aligned: %w", &rpc.Error{Message: "no space", Hint: "make room"}))
	if got := c.stderr.String(); got != "weir: mode aligned: no space\nhint: make room\n" {
		t.Errorf("%q", got)
	}
	c.stderr.Reset()
	a.report(errors.New("plain"))
	if got := c.stderr.String(); got != "weir: plain\n" {
		t.Errorf("%q", got)
	}
}

func TestHelpNamesWhatIssuesRelyOn(t *testing.T) {
	t.Parallel()
	for command, flags := range map[string]string{
		"jobmanager":  "listen advertise metrics-listen data-dir checkpoint-dir cluster-id insecure etcd-endpoints",
		"taskmanager": "jobmanager listen advertise metrics-listen slots memory data-dir insecure",
		"submit":      "jobmanager param set parallelism checkpoint-interval from name request-id detach output",
		"run":         "param set parallelism checkpoint-interval from",
		"demo":        "duration interval rate sleep mode keep output",
		"list":        "output", "show": "output", "cancel": "output", "checkpoints": "output", "plan": "param output",
	} {
		c := newCommand()
		if code := c.run(t.Context(), command, "--help"); code != ExitOK {
			t.Errorf("%s --help: exit code %d", command, code)
		}
		for flag := range strings.FieldsSeq(flags) {
			if !regexp.MustCompile(`--` + flag + `\b`).MatchString(c.stdout.String()) {
				t.Errorf("%s has no --%s", command, flag)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"64mb": 64 << 20, "32KB": 32 << 10, "1048576": 1 << 20, "1g": 1 << 30, " 2 tb ": 2 << 40, "0": 0, "5b": 5} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "mb", "-1", "1.5gb", "9999999999tb", "9223372036854775808", "64 apples"} {
		if n, err := parseBytes(bad); err == nil {
			t.Errorf("%q is %d", bad, n)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 5837: "5.7 KiB", 3 << 30: "3.0 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 17 * time.Microsecond: "17µs", 4300 * time.Microsecond: "4.3 ms", 3903 * time.Millisecond: "3.90 s", 2 * time.Minute: "2m0s"} {
		if got := durationText(d); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
}

func TestColumnsAreAligned(t *testing.T) {
	t.Parallel()
	var tab table
	tab.row("NAME", right("SIZE"), "")
	tab.row("é", right("10 B"), "note")
	tab.row("longer", right("9 B"))
	var b bytes.Buffer
	tab.print(&b)
	if want := "NAME    SIZE\né       10 B  note\nlonger   9 B\n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestProgressMovesOnATerminalAndIsPrintedOnceElsewhere(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	a := &app{streams: Streams{Err: &b}}
	p := a.progress()
	for _, s := range []string{"one", "one", "two"} {
		p.show("live "+s, s)
	}
	p.done()
	if b.String() != "one\ntwo\n" {
		t.Errorf("%q", b.String())
	}
	b.Reset()
	a.streams.Terminal, a.streams.Width = true, 8
	p = a.progress()
	p.show("a long line", "x")
	p.done()
	p.done()
	if b.String() != "\r\x1b[Ka long \r\x1b[K" {
		t.Errorf("%q", b.String())
	}
}

func TestShowTellsOfTheTaskThatFailedFirst(t *testing.T) {
	t.Parallel()
	task := func(vertex string, subtask int32, state rpc.TaskState, failure string) rpc.TaskDetail {
		return rpc.TaskDetail{Vertex: vertex, Attempt: weir.AttemptID{Subtask: subtask}, State: state, Failure: failure}
	}
	cause := &weir.Failure{Message: "no such user", Operator: "parse", Subtask: 1, Stack: "error returned by main.parse\n\tmain.go:7\n"}
	d := rpc.JobDetail{JobSummary: rpc.JobSummary{Name: "j", Status: rpc.JobFailed}, Failure: cause, Tasks: []rpc.TaskDetail{
		task("in", 0, rpc.TaskFinished, ""), task("in", 1, rpc.TaskCanceled, ""), task("out", 0, rpc.TaskFailed, "partition lost"),
		task("parse", 0, rpc.TaskCanceled, ""), task("parse", 1, rpc.TaskFailed, cause.Error()),
	}}
	var out bytes.Buffer
	a := &app{streams: Streams{Out: &out}}
	a.printDetail(d)
	text := out.String()
	for _, want := range []string{"failure      operator \"parse\", subtask 1: no such user\nerror returned by main.parse\n\tmain.go:7\n", "\nand 3 more: 2 CANCELED, 1 FINISHED (-o json lists all)\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("does not say %q:\n%s", want, text)
		}
	}
	if first, second := strings.Index(text, "parse[1]"), strings.Index(text, "out[0]"); first < 0 || second < first || strings.Contains(text, "in[0]") {
		t.Errorf("tasks:\n%s", text)
	}
	out.Reset()
	d.Tasks = d.Tasks[:2]
	if a.printDetail(d); !strings.Contains(out.String(), "in[0]") || !strings.Contains(out.String(), "in[1]") || strings.Contains(out.String(), "more:") {
		t.Errorf("without a failure:\n%s", out.String())
	}
}
