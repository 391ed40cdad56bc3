package chanstate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/taskmanager/chanstate"
)

// site is a TaskManager with a checkpoint store.
type site struct {
	t      *testing.T
	store  *mem.Store
	use    blobstore.Store
	g      *group.Group
	groups *chanstate.Groups
}

// newSite must be called in a bubble.
func newSite(t *testing.T) *site {
	s := &site{t: t, store: mem.New(), g: group.New(t.Context(), "test")}
	s.use = s.store
	s.groups = chanstate.NewGroups(s.g)
	t.Cleanup(func() {
		if err := s.g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// task is a subtask and what it was told.
type task struct {
	*chanstate.Subtask
	mu struct {
		sync.Mutex
		results []chanstate.Result
	}
}

func (s *site) join(subtask int32, memory int64) *task {
	s.t.Helper()
	k := &task{}
	var err error
	k.Subtask, err = s.groups.Join(chanstate.Options{
		Attempt: weir.AttemptID{Job: weir.JobID{1}, Vertex: 2, Subtask: subtask, Epoch: 5, N: 1},
		Store:   s.use, Directory: "job", Memory: memory,
		Done: func(r chanstate.Result) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.mu.results = append(k.mu.results, r)
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

func (s *site) start(k *task, id weir.CheckpointID) {
	s.t.Helper()
	if err := k.Start(id, snapshotmeta.Dir(id)); err != nil {
		s.t.Fatal(err)
	}
}

func finish(k *task, id weir.CheckpointID) {
	k.FinishInput(id)
	k.FinishOutput(id)
}

// told returns the results so far, once all is quiet.
func (k *task) told() []chanstate.Result {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.results
}

func (s *site) result(k *task, id weir.CheckpointID) chanstate.Result {
	s.t.Helper()
	all := k.told()
	if len(all) == 0 || all[len(all)-1].ID != id {
		s.t.Fatalf("results %v, want one of %d last", all, id)
	}
	return all[len(all)-1]
}

func reasonOf(err error) weir.FailureReason {
	var e *chanstate.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return weir.ReasonNone
}

// read returns the bytes of a handle.
func (s *site) read(h weir.ChannelStateHandle) string {
	s.t.Helper()
	r, err := snapshotmeta.Files{Store: s.store, Dir: "job"}.OpenChannelState(s.t.Context(), h.Handle)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	var all strings.Builder
	for {
		_, b, err := r.Next()
		if err == io.EOF {
			return all.String()
		}
		if err != nil {
			s.t.Fatal(err)
		}
		all.Write(b)
	}
}

func bubble(t *testing.T, fn func(t *testing.T, s *site)) {
	synctest.Test(t, func(t *testing.T) { fn(t, newSite(t)) })
}

var edge = weir.EdgeID{From: "numbers", To: "count"}

func TestSubtasksShareAFile(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		a, b := s.join(0, 0), s.join(1, 0)
		s.start(a, 7)
		s.start(b, 7)
		buf := []byte("first half,")
		a.Input(7, edge, 3, 100, buf)
		copy(buf, "overwritten")
		a.Output(7, edge, 4, 100, []byte("queued"))
		b.Input(7, edge, 3, 100, []byte("of b"))
		a.Input(7, edge, 3, 200, []byte("second half"))
		a.Input(7, edge, 2, 200, []byte("of another producer"))
		finish(a, 7)
		if got := a.told(); len(got) != 0 {
			t.Fatalf("told %v while the other captures", got)
		}
		finish(b, 7)
		r := s.result(a, 7)
		want := []struct {
			side               weir.ChannelSide
			producer, consumer int32
			text               string
		}{
			{weir.ConsumerSide, 2, 0, "of another producer"},
			{weir.ConsumerSide, 3, 0, "first half,second half"},
			{weir.ProducerSide, 0, 4, "queued"},
		}
		if r.Err != nil || len(r.Channels) != len(want) {
			t.Fatalf("got %+v", r)
		}
		bytes := 0
		for i, w := range want {
			h := r.Channels[i]
			if h.Edge != edge || h.Side != w.side || h.Producer != w.producer || h.Consumer != w.consumer || s.read(h) != w.text {
				t.Errorf("channel %d: %+v %q, want %v", i, h, s.read(h), w)
			}
			bytes += len(w.text)
		}
		if r.Bytes != int64(bytes) {
			t.Errorf("%d bytes, want %d", r.Bytes, bytes)
		}
		rb := s.result(b, 7)
		if rb.Err != nil || len(rb.Channels) != 1 || s.read(rb.Channels[0]) != "of b" {
			t.Errorf("b: %+v", rb)
		}
		if got := fmt.Sprint(storetest.Names(t, s.store, "")); got != "[job/chk-7/v2-s0-e5-n1.channels]" {
			t.Errorf("files %s", got)
		}
	})
}

func TestNothingCapturedMakesNoFile(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		a, b := s.join(0, 0), s.join(1, 0)
		s.start(a, 1)
		a.Input(1, edge, 0, 0, nil)
		finish(a, 1)
		if r := s.result(a, 1); r.Err != nil || len(r.Channels) != 0 {
			t.Errorf("got %+v", r)
		}
		s.start(b, 1)
		finish(b, 1)
		s.result(b, 1)
		if got := storetest.Names(t, s.store, ""); len(got) != 0 {
			t.Errorf("files %v", got)
		}
	})
}

func TestGroupsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		var tasks []*task
		for i := range int32(7) {
			tasks = append(tasks, s.join(i, 0))
		}
		if n := len(s.g.Live()); n != 2 {
			t.Fatalf("%d writers for 7 subtasks", n)
		}
		for _, k := range tasks {
			s.start(k, 1)
			k.Input(1, edge, 0, 0, []byte("x"))
			finish(k, 1)
		}
		for _, k := range tasks {
			if r := s.result(k, 1); r.Err != nil {
				t.Error(r.Err)
			}
		}
		if got := len(storetest.Names(t, s.store, "")); got != 2 {
			t.Errorf("%d files, want 2", got)
		}
		for _, k := range tasks {
			k.Close()
			k.Close()
		}
		synctest.Wait()
		if live := s.g.Live(); len(live) != 0 {
			t.Errorf("still running: %v", live)
		}
		if err := tasks[0].Start(2, "chk-2"); !errors.Is(err, chanstate.ErrClosed) {
			t.Errorf("start after close: %v", err)
		}
	})
}

func TestStartedTwiceIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		a := s.join(0, 0)
		s.start(a, 3)
		if err := a.Start(3, "chk-3"); !errors.Is(err, chanstate.ErrRegistered) {
			t.Errorf("got %v", err)
		}
	})
}

func TestMemoryFailsTheCheckpointAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		a, b := s.join(0, 100), s.join(1, 100)
		s.start(a, 1)
		s.start(b, 1)
		a.Input(1, edge, 0, 0, make([]byte, 60))
		b.Input(1, edge, 0, 0, make([]byte, 60))
		b.Input(1, edge, 0, 0, make([]byte, 60))
		if r := s.result(b, 1); !errors.Is(r.Err, chanstate.ErrMemory) || reasonOf(r.Err) != weir.CheckpointAsyncException {
			t.Errorf("b: %v", r.Err)
		}
		if r := s.result(a, 1); reasonOf(r.Err) != weir.ChannelStateSharedStreamException {
			t.Errorf("a: %v", r.Err)
		}
		s.start(a, 2)
		s.start(b, 2)
		a.Input(2, edge, 0, 0, make([]byte, 100))
		finish(a, 2)
		finish(b, 2)
		if r := s.result(a, 2); r.Err != nil {
			t.Errorf("the next checkpoint: %v", r.Err)
		}
	})
}

func TestFailedWriteAndCommit(t *testing.T) {
	for _, op := range []faulty.Op{faulty.Create, faulty.Write, faulty.Commit} {
		t.Run(fmt.Sprint(op), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *site) {
				broken := errors.New("disk full")
				s.use = faulty.New(s.store, faulty.Hook{Before: func(_ context.Context, o faulty.Op, name string) error {
					if o == op && strings.Contains(name, "chk-1/") {
						return broken
					}
					return nil
				}})
				a, b := s.join(0, 0), s.join(1, 0)
				for _, k := range []*task{a, b} {
					s.start(k, 1)
				}
				a.Output(1, edge, 0, 0, make([]byte, 200<<10)) // more than is buffered
				finish(a, 1)
				synctest.Wait()
				b.Output(1, edge, 0, 0, []byte("y"))
				finish(b, 1)
				if r := s.result(a, 1); !errors.Is(r.Err, broken) || reasonOf(r.Err) != weir.IOException {
					t.Errorf("a: %v", r.Err)
				}
				want := weir.ChannelStateSharedStreamException
				if op == faulty.Commit {
					want = weir.IOException // nobody's of the two
				}
				if r := s.result(b, 1); !errors.Is(r.Err, broken) || reasonOf(r.Err) != want {
					t.Errorf("b: %v", r.Err)
				}
				if got := storetest.Names(t, s.store, ""); len(got) != 0 {
					t.Errorf("files %v", got)
				}
				s.start(a, 2)
				s.start(b, 2)
				a.Output(2, edge, 0, 0, []byte("x"))
				finish(a, 2)
				finish(b, 2)
				if r := s.result(a, 2); r.Err != nil {
					t.Errorf("the next checkpoint: %v", r.Err)
				}
			})
		})
	}
}

func TestAbortEndsSlowIO(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.use = faulty.New(s.store, faulty.Hook{Before: func(ctx context.Context, o faulty.Op, name string) error {
			if o == faulty.Commit && strings.Contains(name, "chk-1/") {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(time.Hour):
				}
			}
			return nil
		}})
		a := s.join(0, 0)
		begun := time.Now()
		s.start(a, 1)
		a.Input(1, edge, 0, 0, []byte("x"))
		finish(a, 1)
		cause := &chanstate.Error{Reason: weir.CheckpointExpired, Err: errors.New("too slow")}
		synctest.Wait()
		a.Abort(1, cause)
		if r := s.result(a, 1); reasonOf(r.Err) != weir.CheckpointExpired {
			t.Errorf("got %v", r.Err)
		}
		s.start(a, 2)
		a.Input(2, edge, 0, 0, []byte("x"))
		finish(a, 2)
		if r := s.result(a, 2); r.Err != nil {
			t.Error(r.Err)
		}
		if time.Since(begun) > 0 {
			t.Error("the next checkpoint waited for the old one's I/O")
		}
		if got := fmt.Sprint(storetest.Names(t, s.store, "")); got != "[job/chk-2/v2-s0-e5-n1.channels]" {
			t.Errorf("files %s", got)
		}
	})
}

// TestLostAnswerOfACommit: the file is there, but nobody may rely on it.
func TestLostAnswerOfACommit(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.use = faulty.New(s.store, faulty.Hook{After: func(_ context.Context, o faulty.Op, _ string) error {
			if o == faulty.Commit {
				return errors.New("answer lost")
			}
			return nil
		}})
		a := s.join(0, 0)
		s.start(a, 1)
		a.Input(1, edge, 0, 0, []byte("x"))
		finish(a, 1)
		if r := s.result(a, 1); reasonOf(r.Err) != weir.IOException {
			t.Errorf("got %v", r.Err)
		}
		if got := storetest.Names(t, s.store, ""); len(got) != 0 {
			t.Errorf("files %v", got)
		}
	})
}

func TestCloseWhileCapturing(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		a, b, c := s.join(0, 0), s.join(1, 0), s.join(2, 0)
		s.start(a, 1)
		s.start(b, 1)
		a.Input(1, edge, 0, 0, []byte("x"))
		b.Input(1, edge, 0, 0, []byte("y"))
		finish(b, 1)
		c.Close() // was awaited
		a.Close()
		if r := s.result(b, 1); reasonOf(r.Err) != weir.ChannelStateSharedStreamException {
			t.Errorf("b: %v", r.Err)
		}
		if got := a.told(); len(got) != 0 {
			t.Errorf("a was told %v", got)
		}
		s.start(b, 2)
		b.Input(2, edge, 0, 0, []byte("z"))
		finish(b, 2)
		b.Close()
		synctest.Wait()
		if live := s.g.Live(); len(live) != 0 {
			t.Errorf("still running: %v", live)
		}
	})
}

func TestStopWhileCapturing(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		a, b := s.join(0, 0), s.join(1, 0)
		s.start(a, 1)
		a.Input(1, edge, 0, 0, []byte("x"))
		finish(a, 1)
		b.Close()
		if err := s.g.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.start(a, 2)
		a.Input(2, edge, 0, 0, []byte("x"))
		finish(a, 2)
		a.Close()
		if _, err := s.groups.Join(chanstate.Options{Attempt: weir.AttemptID{Job: weir.JobID{1}}}); !errors.Is(err, chanstate.ErrClosed) {
			t.Errorf("join after stop: %v", err)
		}
	})
}

// TestHalfRecordsJoin captures elements cut anywhere, and cuts what is read into the
// same elements: the timestamps count against the base of the segment in which each
// began.
func TestHalfRecordsJoin(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		a := s.join(0, 0)
		s.start(a, 1)
		var want []string
		for seg := range 20 {
			base := int64(seg * 1000)
			var b []byte
			for i := range 40 {
				payload := strings.Repeat(fmt.Sprint(i), 100*(i%7)+1)
				want = append(want, fmt.Sprint(base+int64(i), payload))
				head := make([]byte, 64)
				n := wire.PutRecordHead(head, false, 0, base, base+int64(i), len(payload))
				b = append(append(b, head[:n]...), payload...)
			}
			cut := seg * len(b) / 20
			a.Input(1, edge, 0, base, b[:cut])
			a.Input(1, edge, 0, base, b[cut:])
		}
		finish(a, 1)
		r := s.result(a, 1)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		in, err := snapshotmeta.Files{Store: s.store, Dir: "job"}.OpenChannelState(t.Context(), r.Channels[0].Handle)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		var cutter wire.Cutter
		var got []string
		for {
			base, b, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			cutter.Feed(b, base)
			var e wire.Element
			for {
				ok, err := cutter.Next(&e)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				got = append(got, fmt.Sprint(e.Timestamp, string(e.Payload)))
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%d elements, want %d", len(got), len(want))
		}
	})
}

// TestManyTasksAtOnce captures from many goroutines, with the race detector in mind.
func TestManyTasksAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		var tasks []*task
		for i := range int32(10) {
			tasks = append(tasks, s.join(i, 0))
		}
		for id := weir.CheckpointID(1); id <= 5; id++ {
			work := group.New(t.Context(), "tasks")
			for _, k := range tasks {
				if err := work.Go("task", func(context.Context) error {
					if err := k.Start(id, snapshotmeta.Dir(id)); err != nil {
						return err
					}
					for i := range int32(20) {
						k.Input(id, edge, i%3, 0, []byte(strings.Repeat("x", 3000)))
					}
					finish(k, id)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			if err := work.Wait(); err != nil {
				t.Fatal(err)
			}
			for _, k := range tasks {
				r := s.result(k, id)
				if r.Err != nil || len(r.Channels) != 3 || r.Bytes != 60000 {
					t.Fatalf("%+v", r)
				}
			}
			if err := work.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// BenchmarkCapture is what a task pays for a buffer of 32 KiB.
func BenchmarkCapture(b *testing.B) {
	g := group.New(b.Context(), "bench")
	defer func() { _ = g.Stop(context.Background()) }()
	k, err := chanstate.NewGroups(g).Join(chanstate.Options{Store: mem.New(), Directory: "job", Done: func(chanstate.Result) {}})
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 32<<10)
	id := weir.CheckpointID(0)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%256 == 0 {
			k.Abort(id, errors.New("enough"))
			id++
			if err := k.Start(id, "chk"); err != nil {
				b.Fatal(err)
			}
		}
		k.Input(id, edge, 0, 0, buf)
	}
}
