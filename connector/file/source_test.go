package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/operator"
)

func readJob(o SourceOptions) flow.Job {
	return flow.Define("read", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "in", Lines(o))
		flow.To(in, "out", flow.Discard[string](), flow.StartNewChain())
		return nil
	})
}

// reading is a source with its readers, without a cluster.
type reading struct {
	t          testing.TB
	options    SourceOptions
	enumerator *enumerator
	tasks      []*flowtest.Task
	asked      []int // subtasks whose requests are on their way
	lines      [][]string
	dead       bool // events of the enumerator are refused
}

func startReading(t testing.TB, o SourceOptions, readers int, list []byte, splits *flowtest.Snapshot) *reading {
	t.Helper()
	r := &reading{t: t, options: o, enumerator: &enumerator{options: o.withDefaults()}, lines: make([][]string, readers)}
	if list != nil {
		if err := r.enumerator.Restore(list); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.enumerator.Start(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	if list == nil {
		if _, err := r.enumerator.Assign(context.Background(), readers); err != nil {
			t.Fatal(err)
		}
	}
	for i := range readers {
		task := flowtest.New(t, readJob(o), nil, flowtest.Options{Parallelism: readers, Subtask: i, Restore: splits})
		task.Env.Splits = func(weir.OperatorID) [][]byte { return nil }
		task.Env.SendEvent = func(_ weir.OperatorID, event []byte) {
			if !bytes.Equal(event, []byte{eventVersion, request}) {
				t.Fatalf("event %q", event)
			}
			r.asked = append(r.asked, i)
		}
		if err := task.Chain.Open(task.Env); err != nil {
			t.Fatal(err)
		}
		r.tasks = append(r.tasks, task)
	}
	return r
}

// Parallelism and SendEvent implement operator.EnumeratorContext.
func (r *reading) Parallelism() int { return len(r.tasks) }
func (r *reading) SendEvent(subtask int, event []byte) error {
	if r.dead {
		return errors.New("does not run")
	}
	return r.tasks[subtask].Chain.HandleEvent(weir.OperatorIDOf("in"), event)
}

// answer lets the enumerator answer one request.
func (r *reading) answer() {
	if len(r.asked) == 0 {
		return
	}
	i := r.asked[0]
	r.asked = r.asked[1:]
	if err := r.enumerator.HandleEvent(context.Background(), i, []byte{eventVersion, request}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reading) poll(i, limit int) operator.SourceStatus {
	s := r.tasks[i].Poll(limit)
	c, err := codec.For[string]()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, rec := range r.tasks[i].Emitted() {
		var line string
		if err := c.Decode(rec.Payload, &line); err != nil {
			r.t.Fatal(err)
		}
		r.lines[i] = append(r.lines[i], line)
	}
	return s
}

func (r *reading) snapshot() ([]byte, *flowtest.Snapshot) {
	list, err := r.enumerator.Snapshot(context.Background(), 1)
	if err != nil {
		r.t.Fatal(err)
	}
	var parts []*flowtest.Snapshot
	for _, task := range r.tasks {
		parts = append(parts, task.Snapshot(1))
	}
	return list, flowtest.Merge(parts...)
}

// all reads until every reader is at its end.
func (r *reading) all() []string {
	for ended := 0; ended < len(r.tasks); {
		ended = 0
		for i := range r.tasks {
			if r.poll(i, 7) == operator.SourceEnd {
				ended++
			}
		}
		r.answer()
	}
	return slices.Concat(r.lines...)
}

func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// linesOf is what reading should give.
func linesOf(content string) []string {
	if content == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

func TestEveryLineIsReadOnceHoweverFilesAreCut(t *testing.T) {
	t.Parallel()
	for i, content := range []string{
		"a\nbb\nccc\n", "a\nbb\nccc", "\n\n\n", "\n", "x", "\r\na\r\n\r\n", strings.Repeat("long", 30) + "\nb\n", "a\n" + strings.Repeat("z", 50),
	} {
		dir := t.TempDir()
		write(t, dir, "in", content)
		for split := int64(1); split <= int64(len(content))+1; split++ {
			r := startReading(t, SourceOptions{Input: dir, SplitBytes: split}, 2, nil, nil)
			got := r.all()
			want := linesOf(content)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("content %d in splits of %d: %q, want %q", i, split, got, want)
			}
		}
	}
}

func TestLinesAcrossBlocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat("x", rng.IntN(3*blockBytes/100)+i%3*blockBytes/2))
	}
	write(t, dir, "in", b.String())
	for _, split := range []int64{blockBytes - 1, blockBytes, 3*blockBytes + 1, 1 << 30} {
		got, want := startReading(t, SourceOptions{Input: dir, SplitBytes: split}, 3, nil, nil).all(), linesOf(b.String())
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("splits of %d: %d lines, want %d, or others", split, len(got), len(want))
		}
	}
}

// TestNoLineIsLostOrReadTwiceOverFailures rolls readers and enumerator back to their
// last snapshot at random moments, with other numbers of readers.
func TestNoLineIsLostOrReadTwiceOverFailures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "source")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		var want []string
		for i := range rapid.IntRange(1, 5).Draw(rt, "files") {
			var b strings.Builder
			for j := range rapid.IntRange(0, 30).Draw(rt, "lines") {
				fmt.Fprintf(&b, "%d/%d%s\n", i, j, strings.Repeat("-", rapid.IntRange(0, 20).Draw(rt, "length")))
			}
			write(t, dir, fmt.Sprint("f", i), b.String())
			want = append(want, linesOf(b.String())...)
		}
		if len(want) == 0 {
			return
		}
		o := SourceOptions{Input: dir, SplitBytes: rapid.Int64Range(1, 200).Draw(rt, "split")}
		r := startReading(t, o, 2, nil, nil)
		list, splits := r.snapshot()
		var committed []string
		for range rapid.IntRange(0, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				list, splits = r.snapshot()
				committed = append(committed, slices.Concat(r.lines...)...)
				clear(r.lines)
			case 1:
				r = startReading(t, o, rapid.IntRange(1, 3).Draw(rt, "readers"), list, splits)
			case 2:
				r.dead = true // and rolled back, as its job is
				r.answer()
				r.dead = false
				r = startReading(t, o, len(r.tasks), list, splits)
			case 3:
				r.answer()
			default:
				r.poll(rapid.IntRange(0, len(r.tasks)-1).Draw(rt, "reader"), rapid.IntRange(1, 9).Draw(rt, "records"))
			}
		}
		got := append(committed, r.all()...)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("%d lines %q, want %d %q", len(got), got, len(want), want)
		}
	})
}

func TestSplitsThatCouldNotBeSentStayUnassigned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 5 {
		write(t, dir, fmt.Sprint(i), "12345\n")
	}
	r := startReading(t, SourceOptions{Input: dir, SplitBytes: 20}, 1, nil, nil)
	before, _ := r.snapshot()
	r.poll(0, 1)
	r.dead = true
	r.answer()
	if after, _ := r.snapshot(); !bytes.Equal(before, after) {
		t.Errorf("unassigned was %q and is %q", before, after)
	}
}

func TestWhatIsListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b.txt", "a.txt", "sub/c.txt", "_SUCCESS", ".weir-x.pending", "_tmp/d.txt", "e.log"} {
		write(t, dir, name, "x\n")
	}
	write(t, dir, "empty.txt", "")
	if err := os.Symlink(filepath.Join(dir, "a.txt"), filepath.Join(dir, "z.txt")); err != nil {
		t.Fatal(err)
	}
	names := func(input string) string {
		files, err := list(t.Context(), input)
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, f := range files {
			rel, err := filepath.Rel(dir, f.path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, rel)
		}
		return strings.Join(all, " ")
	}
	for input, want := range map[string]string{
		dir:                               "a.txt b.txt e.log sub/c.txt z.txt",
		dir + "/*.txt":                    "a.txt b.txt z.txt",
		dir + "/*":                        "a.txt b.txt e.log sub/c.txt z.txt",
		dir + "/_SUCCESS":                 "_SUCCESS",
		dir + "/nothing":                  fmt.Sprintf("no input file: %q does not exist", dir+"/nothing"),
		dir + "/*.csv":                    fmt.Sprintf("no input file: nothing matches %q on the JobManager's host", dir+"/*.csv"),
		filepath.Join(dir, "[a.txt"):      fmt.Sprintf("input %q: syntax error in pattern", dir+"/[a.txt"),
		filepath.Join(dir, "em?ty.txt"):   "",
		filepath.Join(dir, "sub", "c*xt"): "sub/c.txt",
	} {
		if got := names(input); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s, want %s", input, got, want)
		}
	}
}

// failure polls a source to its end and returns how it failed.
func failure(t *testing.T, o SourceOptions, before func(r *reading)) error {
	t.Helper()
	r := startReading(t, o, 1, nil, nil)
	if before != nil {
		before(r)
	}
	for range 100 {
		s, err := r.tasks[0].Chain.Poll(10)
		if err != nil || s == operator.SourceEnd {
			return err
		}
		r.answer()
	}
	t.Fatal("no end")
	return nil
}

func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := write(t, dir, "in", "12345678\n1234567890\r\n12345678901\n")
	err := failure(t, SourceOptions{Input: dir, MaxLineBytes: 10}, nil)
	var f *weir.Failure
	if !errors.As(err, &f) || !f.NoRetry || f.Operator != "in" || !strings.Contains(f.Message, "the line at byte 21 of "+in+" has more than 10 bytes") {
		t.Errorf("got %+v", err)
	}
	if err := failure(t, SourceOptions{Input: dir, MaxLineBytes: 11}, nil); err != nil {
		t.Errorf("got %v", err)
	}
	write(t, dir, "in", strings.Repeat("x", 5*blockBytes))
	if err := failure(t, SourceOptions{Input: dir, MaxLineBytes: blockBytes}, nil); !errors.Is(err, ErrLineTooLong) {
		t.Errorf("got %v", err)
	}
}

func TestChangedInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := write(t, dir, "in", "1\n2\n3")
	err := failure(t, SourceOptions{Input: dir}, func(*reading) { write(t, dir, "in", "1\n") })
	if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), in) {
		t.Errorf("a shorter file: %v", err)
	}
	write(t, dir, "in", "1\n2\n3")
	r := startReading(t, SourceOptions{Input: dir}, 1, nil, nil)
	write(t, dir, "in", "1\n2\n345\n6\n")
	if got := r.all(); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("a longer file: %q", got)
	}
	err = failure(t, SourceOptions{Input: dir}, func(*reading) { os.Remove(in) })
	var f *weir.Failure
	if !errors.As(err, &f) || f.NoRetry || f.Fault != weir.FaultOutside || !strings.Contains(f.Message, in) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestBadSourceOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []SourceOptions{{}, {Input: "x", SplitBytes: -1}, {Input: "x", MaxLineBytes: -1}, {Input: "x", MaxLineBytes: 1 << 40}} {
		e := Lines(o).Enumerator()
		if err := e.Start(t.Context(), nil); !errors.Is(err, ErrBadOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	s := span{path: "/in", size: 9, start: 3, end: 7, pos: 5, begun: true}
	f.Add(s.append(nil))
	f.Add(appendAssignment(nil, []span{s, s}))
	f.Add(appendAssignment(nil, nil))
	f.Add(appendList(nil, []listed{{"/in", 9, 3}}))
	f.Add((&part{name: "x", size: 3}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseSpan(b); err == nil {
			if again, err := parseSpan(s.append(nil)); err != nil || again != s {
				t.Fatalf("%+v, %+v, %v", s, again, err)
			}
		}
		if splits, _, err := parseAssignment(b); err == nil {
			if again, _, err := parseAssignment(appendAssignment(nil, splits)); err != nil || !slices.Equal(again, splits) {
				t.Fatalf("%+v, %+v, %v", splits, again, err)
			}
		}
		if files, err := parseList(b); err == nil {
			if again, err := parseList(appendList(nil, files)); err != nil || !slices.Equal(again, files) {
				t.Fatalf("%+v, %+v, %v", files, again, err)
			}
		}
		if p, err := parsePart(b); err == nil {
			if again, err := parsePart(p.append(nil)); err != nil || again != p {
				t.Fatalf("%+v, %+v, %v", p, again, err)
			}
		}
	})
}
