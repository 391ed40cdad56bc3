package file

import (
	"errors"
	"fmt"
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
)

func writeJob(o SinkOptions) flow.Job {
	return flow.Define("write", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "in", Lines(SourceOptions{Input: "-"}))
		flow.To(in, "out", NewSink(o, func(b []byte, v string) []byte { return append(b, v...) }), flow.StartNewChain())
		return nil
	})
}

func openSink(t testing.TB, o SinkOptions, subtask, parallelism int, from *flowtest.Snapshot) *flowtest.Task {
	t.Helper()
	return flowtest.Open(t, writeJob(o), nil, flowtest.Options{Operator: "out", Subtask: subtask, Parallelism: parallelism, Restore: from})
}

func feed(t testing.TB, task *flowtest.Task, lines ...string) error {
	t.Helper()
	c, err := codec.For[string]()
	if err != nil {
		t.Fatal(err)
	}
	var records []flowtest.Record
	for _, l := range lines {
		b, err := c.Append(nil, &l)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, flowtest.Record{Payload: b})
	}
	return task.Feed(records)
}

func mustFeed(t testing.TB, task *flowtest.Task, lines ...string) {
	t.Helper()
	if err := feed(t, task, lines...); err != nil {
		t.Fatal(err)
	}
}

func complete(t testing.TB, task *flowtest.Task, id weir.CheckpointID) {
	t.Helper()
	if err := task.Chain.NotifyComplete(id); err != nil {
		t.Fatal(err)
	}
}

// published returns the lines of all published files, sorted.
func published(t testing.TB, dir string) []string {
	t.Helper()
	files, err := list(t.Context(), dir) // which leaves out what is not published
	if errors.Is(err, ErrNoInput) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range files {
		b, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, linesOf(string(b))...)
	}
	slices.Sort(all)
	return all
}

// names returns the names in a directory with this end, of hidden files too.
func namesIn(t testing.TB, dir, suffix string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names
}

func wantPublished(t testing.TB, dir string, want ...string) {
	t.Helper()
	if got := published(t, dir); !slices.Equal(got, want) {
		t.Fatalf("published: %q, want %q", got, want)
	}
}

func TestNothingIsPublishedBeforeItsCheckpointIsComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	task := openSink(t, SinkOptions{Output: dir}, 0, 1, nil)
	mustFeed(t, task, "a", "b")
	task.Snapshot(5)
	mustFeed(t, task, "c")
	wantPublished(t, dir)
	task.Snapshot(6) // a second one before the first is complete
	complete(t, task, 5)
	wantPublished(t, dir, "a", "b") // c is not in 5
	mustFeed(t, task, "d")
	complete(t, task, 6)
	wantPublished(t, dir, "a", "b", "c")
	complete(t, task, 6)
	complete(t, task, 5)
	wantPublished(t, dir, "a", "b", "c")
}

func TestALaterCheckpointPublishesWhatAnAbortedOneNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	task := openSink(t, SinkOptions{Output: dir}, 0, 1, nil)
	mustFeed(t, task, "a")
	task.Snapshot(5)
	if err := task.Chain.NotifyAborted(5); err != nil {
		t.Fatal(err)
	}
	mustFeed(t, task, "b")
	s := task.Snapshot(7)
	complete(t, task, 7)
	wantPublished(t, dir, "a", "b")
	openSink(t, SinkOptions{Output: dir}, 0, 1, s) // published already
	wantPublished(t, dir, "a", "b")
}

// B101: restore from a checkpoint, fail before the next, restore from it again.
func TestACheckpointCanBeRestoredTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := SinkOptions{Output: dir, Suffix: ".txt"}
	task := openSink(t, o, 0, 1, nil)
	mustFeed(t, task, "a")
	s := task.Snapshot(3)
	mustFeed(t, task, "b") // not in the snapshot: read again
	for range 2 {
		task = openSink(t, o, 0, 1, s)
		wantPublished(t, dir, "a")
		mustFeed(t, task, "b")
		task.Snapshot(4) // never complete
	}
	task = openSink(t, o, 0, 1, s)
	mustFeed(t, task, "b")
	s = task.Snapshot(5)
	openSink(t, o, 0, 1, s) // B103: its notification is lost
	wantPublished(t, dir, "a", "b")
	if n := len(namesIn(t, dir, ".txt")); n != 2 {
		t.Errorf("%d files end in the suffix", n)
	}
}

func TestOtherSubtasksPublishWhatWasDealtToThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := SinkOptions{Output: dir, PartBytes: 3}
	var parts []*flowtest.Snapshot
	for i := range 3 {
		task := openSink(t, o, i, 3, nil)
		mustFeed(t, task, fmt.Sprint(i, "x"), fmt.Sprint(i, "y"), "z")
		parts = append(parts, task.Snapshot(1))
	}
	for i := range 2 {
		openSink(t, o, i, 2, flowtest.Merge(parts...))
	}
	wantPublished(t, dir, "0x", "0y", "1x", "1y", "2x", "2y", "z", "z", "z")
	if n := len(namesIn(t, dir, "")); n != 9 {
		t.Errorf("%d files, want 9: each of three bytes or fewer, and nothing hidden", n)
	}
}

func TestWhatAttemptsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := SinkOptions{Output: dir}
	for i := range 3 {
		task := flowtest.New(t, writeJob(o), nil, flowtest.Options{Operator: "out", Subtask: i, Parallelism: 3})
		if err := task.Chain.Open(task.Env); err != nil {
			t.Fatal(err)
		}
		mustFeed(t, task, "old")
		if i == 2 {
			task.Snapshot(1) // a pending file, which a savepoint may name
			mustFeed(t, task, "old")
		}
	}
	write(t, dir, ".weir-ffffffffffff-ffffffff-0-0000000000000000-0.writing", "another job's")
	write(t, dir, ".weir-.writing", "nobody's")
	if n := len(namesIn(t, dir, writingSuffix)); n != 5 {
		t.Fatalf("%d files are being written", n)
	}
	openSink(t, o, 0, 1, nil)
	if left := namesIn(t, dir, writingSuffix); len(left) != 2 {
		t.Errorf("left: %q", left)
	}
	if left := namesIn(t, dir, pendingSuffix); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
	wantPublished(t, dir)
}

func TestAFailedTaskRemovesOnlyWhatItWasWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	task := openSink(t, SinkOptions{Output: dir}, 0, 1, nil)
	mustFeed(t, task, "a")
	s := task.Snapshot(1)
	mustFeed(t, task, "b")
	if err := task.Chain.Close(); err != nil {
		t.Fatal(err)
	}
	if left := namesIn(t, dir, ""); len(left) != 1 || !strings.HasSuffix(left[0], pendingSuffix) {
		t.Errorf("left: %q", left)
	}
	openSink(t, SinkOptions{Output: dir}, 0, 1, s)
	wantPublished(t, dir, "a")
}

// B102: what is published has the length that the snapshot says.
func TestADamagedPartIsNotPublished(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	task := openSink(t, SinkOptions{Output: dir}, 0, 1, nil)
	mustFeed(t, task, "abc")
	task.Snapshot(1)
	name := namesIn(t, dir, pendingSuffix)[0]
	write(t, dir, name, "ab")
	err := task.Chain.NotifyComplete(1)
	var f *weir.Failure
	if !errors.Is(err, ErrPartDamaged) || !errors.As(err, &f) || !f.NoRetry || f.Operator != "out" || !strings.Contains(f.Message, name) {
		t.Errorf("got %+v", err)
	}
	wantPublished(t, dir)
}

func TestAPartThatSomebodyTookAwayHoldsUpNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	task := openSink(t, SinkOptions{Output: dir}, 0, 1, nil)
	mustFeed(t, task, "a")
	s := task.Snapshot(1)
	complete(t, task, 1)
	if err := os.Remove(filepath.Join(dir, namesIn(t, dir, "")[0])); err != nil {
		t.Fatal(err)
	}
	openSink(t, SinkOptions{Output: dir}, 0, 1, s)
	wantPublished(t, dir)
}

// Two attempts of one subtask, of which one does not know that it was replaced, publish
// the same file: each step of one between two of the other.
func TestPublishingIsIdempotentAtEveryStep(t *testing.T) {
	t.Parallel()
	p := part{name: "x", size: 2}
	for _, there := range [][]string{{"pending"}, {"pending", "final"}, {"final"}} {
		dir := t.TempDir()
		pending := filepath.Join(dir, p.name.pending())
		final := filepath.Join(dir, p.name.final())
		write(t, dir, "source", "a\n")
		for _, name := range there {
			to := pending
			if name == "final" {
				to = final
			}
			if err := os.Link(filepath.Join(dir, "source"), to); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if found, err := p.publish(dir); !found || err != nil {
				t.Fatalf("%q: %v, %v", there, found, err)
			}
			if _, err := os.Stat(pending); !os.IsNotExist(err) {
				t.Errorf("%q: the pending name is there: %v", there, err)
			}
			if b, err := os.ReadFile(final); err != nil || string(b) != "a\n" {
				t.Errorf("%q: %q, %v", there, b, err)
			}
		}
	}
	if found, err := p.publish(t.TempDir()); found || err != nil {
		t.Errorf("nothing: %v, %v", found, err)
	}
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "file", "x")
	o := SinkOptions{Output: filepath.Join(dir, "file")}
	task := flowtest.New(t, writeJob(o), nil, flowtest.Options{Operator: "out"})
	err := task.Chain.Open(task.Env)
	var f *weir.Failure
	if !errors.As(err, &f) || f.NoRetry || f.Fault != weir.FaultOutside || f.Operator != "out" || !strings.Contains(f.Message, o.Output) {
		t.Errorf("a file instead of a directory: %+v", err)
	}
	gone := filepath.Join(dir, "gone")
	task = openSink(t, SinkOptions{Output: gone}, 0, 1, nil)
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	f = nil
	if err := feed(t, task, "a"); !errors.As(err, &f) || f.NoRetry || f.Operator != "out" || !strings.Contains(f.Message, gone) {
		t.Errorf("a directory that is gone: %+v", err)
	}
	for _, o := range []SinkOptions{{}, {Output: "x", PartBytes: -1}, {Output: "x", Suffix: "/../x"}} {
		task := flowtest.New(t, writeJob(o), nil, flowtest.Options{Operator: "out"})
		if err := task.Chain.Open(task.Env); !errors.Is(err, ErrBadOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestTheEndPublishesIfNoCheckpointFollows(t *testing.T) {
	t.Parallel()
	for _, checkpointed := range []bool{false, true} {
		dir := t.TempDir()
		task := openSink(t, SinkOptions{Output: dir, PartBytes: 4}, 0, 1, nil)
		task.Env.LastCheckpoint = checkpointed
		mustFeed(t, task, "abc", "def")
		if err := task.Chain.Finish(); err != nil {
			t.Fatal(err)
		}
		if checkpointed {
			wantPublished(t, dir)
			task.Snapshot(9)
			complete(t, task, 9)
		}
		wantPublished(t, dir, "abc", "def")
	}
}

// TestEveryRecordIsPublishedOnce leads a sink through random lives. Whatever happens, the
// published lines are those of the newest complete checkpoint that somebody was told of
// or started from.
func TestEveryRecordIsPublishedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "sink")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		type snapshot struct {
			id    weir.CheckpointID
			state *flowtest.Snapshot
			lines int
		}
		o := SinkOptions{Output: dir, PartBytes: rapid.Int64Range(1, 30).Draw(rt, "part")}
		task := openSink(t, o, 0, 1, nil)
		var pending []snapshot
		var latest snapshot // complete
		emitted, visible := 0, 0
		id := weir.CheckpointID(0)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0, 1, 2:
				mustFeed(t, task, fmt.Sprintf("%04d", emitted))
				emitted++
			case 3:
				id++
				pending = append(pending, snapshot{id, task.Snapshot(id), emitted})
			case 4: // a checkpoint completes; those before it are subsumed
				if len(pending) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(pending)-1).Draw(rt, "which")
				latest, pending = pending[i], pending[i+1:]
				if rapid.Bool().Draw(rt, "told") {
					complete(t, task, latest.id)
					visible = latest.lines
				}
			case 5: // one is aborted
				if len(pending) > 0 {
					pending = pending[1:]
				}
			case 6: // the job fails and starts from the latest
				task = openSink(t, o, 0, 1, latest.state)
				emitted, visible, pending = latest.lines, latest.lines, nil
			}
			got := published(t, dir)
			for i, line := range got {
				if line != fmt.Sprintf("%04d", i) {
					rt.Fatalf("published: %q", got)
				}
			}
			if len(got) != visible {
				rt.Fatalf("%d lines are published, want %d: %q", len(got), visible, got)
			}
		}
	})
}
