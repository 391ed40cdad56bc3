package chain_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
	"github.com/weirflow/weir/taskmanager/chain"
)

// timers is a timer service on a heap backend with a clock set by hand.
type timers struct {
	*chain.Timers
	backend statebackend.Backend
	now     int64
	fired   []string
	changed int
}

func newBackend(t testing.TB, pool *heap.PagePool) statebackend.Backend {
	t.Helper()
	b, err := heap.NewFactory(pool).New(statebackend.Options{MaxParallelism: 128, KeyGroups: weir.KeyGroupRange{First: 0, Last: 127}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newTimers(t testing.TB, b statebackend.Backend) *timers {
	t.Helper()
	s := &timers{backend: b}
	var err error
	s.Timers, err = chain.NewTimers(chain.TimersOptions{
		Backend: b,
		Fire: func(_ uint64, key []byte, at int64) error {
			s.fired = append(s.fired, fmt.Sprintf("%s@%d", key, at))
			return nil
		},
		Now:     func() time.Time { return time.UnixMilli(s.now) },
		Changed: func() { s.changed++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *timers) set(key string, at int64) { s.Register(codec.Hash([]byte(key)), []byte(key), at) }
func (s *timers) del(key string, at int64) { s.Delete(codec.Hash([]byte(key)), []byte(key), at) }

func never() bool { return false }

// B07: however many are due, firing ends soon after somebody else wants the goroutine, but
// gets on each time.
func TestDueTimersGiveWay(t *testing.T) {
	t.Parallel()
	b := newBackend(t, heap.NewPagePool(0))
	defer b.Close()
	s := newTimers(t, b)
	for i := range 10 {
		s.set(string(rune('a'+i)), 1)
	}
	s.now = 5
	for want := range 10 {
		if len(s.fired) != want {
			t.Fatalf("%d fired, want %d", len(s.fired), want)
		}
		more, err := s.Fire(100, func() bool { return true })
		if err != nil || more != (want < 9) {
			t.Fatalf("more=%v, %v after %d", more, err, want+1)
		}
	}
}

func (s *timers) fireAll(t testing.TB) []string {
	t.Helper()
	s.fired = nil
	for {
		more, err := s.Fire(3, never)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return s.fired
		}
	}
}

func TestTimersFireInOrderAndOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, heap.NewPagePool(0))
	defer b.Close()
	s := newTimers(t, b)
	s.set("a", 30)
	s.set("b", 10)
	s.set("c", 20)
	s.set("b", 10) // the same timer
	s.set("d", 40)
	s.del("c", 20)
	if s.changed != 2 { // by a at 30 and by b at 10
		t.Errorf("the earliest time changed %d times, want 2", s.changed)
	}
	if at, ok := s.Next(); !ok || at != 10 {
		t.Errorf("next is %d %v, want 10", at, ok)
	}
	s.now = 30
	if got, want := s.fireAll(t), []string{"b@10", "a@30"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := s.fireAll(t); len(got) != 0 {
		t.Errorf("fired again: %v", got)
	}
	if s.Len() != 1 {
		t.Errorf("%d timers are left, want 1", s.Len())
	}
}

// TestTimerEntriesKeepTheirForm is the golden of docs/formats.md, Timers.
func TestTimerEntriesKeepTheirForm(t *testing.T) {
	t.Parallel()
	b := newBackend(t, heap.NewPagePool(0))
	defer b.Close()
	s := newTimers(t, b)
	s.set("k", 1_700_000_000_123)
	s.set("k", -5)
	table, err := b.Table(statebackend.Descriptor{
		Name: "weir/processing-timers", FixedSize: 1,
		Schema: weir.StateSchema{State: "weir/processing-timers", Key: "bytes", Value: "timer/1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	table.Scan(func(_ weir.KeyGroup, key, namespace, value []byte) bool {
		got = append(got, fmt.Sprintf("%s %x %x", key, namespace, value))
		return true
	})
	slices.Sort(got)
	if want := []string{"k 7ffffffffffffffb 01", "k 8000018bcfe5687b 01"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimerSetByTimerFiresToo(t *testing.T) {
	t.Parallel()
	b := newBackend(t, heap.NewPagePool(0))
	defer b.Close()
	fired := 0
	var s *chain.Timers
	s, err := chain.NewTimers(chain.TimersOptions{
		Backend: b,
		Fire: func(hash uint64, key []byte, at int64) error {
			fired++
			if at < 5 {
				s.Register(hash, key, at+1)
			}
			return nil
		},
		Now:     func() time.Time { return time.UnixMilli(3) },
		Changed: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Register(codec.Hash([]byte("k")), []byte("k"), 1)
	if _, err := s.Fire(100, never); err != nil {
		t.Fatal(err)
	}
	if at, _ := s.Next(); fired != 3 || at != 4 {
		t.Errorf("fired %d, next at %d; want 3 and 4", fired, at)
	}
}

// TestTimersSurviveRestore snapshots the backend in the middle of a life and goes on
// with a new one.
func TestTimersSurviveRestore(t *testing.T) {
	t.Parallel()
	pool := heap.NewPagePool(0)
	b := newBackend(t, pool)
	s := newTimers(t, b)
	for i := range 200 {
		s.set(fmt.Sprintf("key-%d", i%50), int64(i))
	}
	s.now = 40
	s.fireAll(t)
	s.del("key-0", 50)

	restored := newBackend(t, pool)
	defer restored.Close()
	restore(t, b, restored)
	r := newTimers(t, restored)
	s.now, r.now = 1000, 1000
	if got, want := r.fireAll(t), s.fireAll(t); !slices.Equal(got, want) || len(got) != 158 {
		t.Errorf("after the restore\n%v, without it\n%v", got, want)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func restore(t *testing.T, from, to statebackend.Backend) {
	t.Helper()
	snap, err := from.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Release()
	var buf bytes.Buffer
	if _, err := snap.Write(t.Context(), &buf); err != nil {
		t.Fatal(err)
	}
	h := weir.KeyedStateHandle{Range: weir.KeyGroupRange{First: 0, Last: 127}, Backend: heap.Name, Handle: weir.StateHandle{Inline: buf.Bytes()}}
	open := func(context.Context, weir.StateHandle) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	}
	if err := to.Restore(t.Context(), []weir.KeyedStateHandle{h}, open); err != nil {
		t.Fatal(err)
	}
}

// TestTimersModel compares with a sorted set.
func TestTimersModel(t *testing.T) {
	t.Parallel()
	pool := heap.NewPagePool(0)
	rapid.Check(t, func(rt *rapid.T) {
		b := newBackend(t, pool)
		defer b.Close()
		s := newTimers(t, b)
		model := map[string]int64{} // "key@at" to at
		draw := func(rt *rapid.T) (string, int64) {
			return fmt.Sprintf("k%d", rapid.IntRange(0, 9).Draw(rt, "key")), s.now + int64(rapid.IntRange(-2, 20).Draw(rt, "in"))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"set": func(rt *rapid.T) {
				k, at := draw(rt)
				s.set(k, at)
				model[fmt.Sprintf("%s@%d", k, at)] = at
			},
			"delete": func(rt *rapid.T) {
				k, at := draw(rt)
				s.del(k, at)
				delete(model, fmt.Sprintf("%s@%d", k, at))
			},
			"advance": func(rt *rapid.T) {
				s.now += int64(rapid.IntRange(0, 10).Draw(rt, "by"))
				var want []string
				for name, at := range model {
					if at <= s.now {
						want = append(want, name)
						delete(model, name)
					}
				}
				got := slices.Clone(s.fireAll(t))
				if !slices.IsSortedFunc(got, func(a, b string) int { return int(atOf(a) - atOf(b)) }) {
					rt.Fatalf("out of order: %v", got)
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					rt.Fatalf("got %v, want %v", got, want)
				}
			},
			"": func(rt *rapid.T) {
				if s.Len() != len(model) {
					rt.Fatalf("%d timers, want %d", s.Len(), len(model))
				}
				earliest, any := int64(1<<62), false
				for _, at := range model {
					earliest, any = min(earliest, at), true
				}
				if at, ok := s.Next(); any && (!ok || at > earliest) {
					rt.Fatalf("next is %d %v, earliest is %d", at, ok, earliest)
				}
			},
		})
	})
}

func atOf(name string) (at int64) {
	fmt.Sscanf(name[bytes.IndexByte([]byte(name), '@')+1:], "%d", &at)
	return at
}

func TestTimersAllocateNothing(t *testing.T) {
	b := newBackend(t, heap.NewPagePool(0))
	defer b.Close()
	now := int64(0)
	s, err := chain.NewTimers(chain.TimersOptions{
		Backend: b,
		Fire:    func(uint64, []byte, int64) error { return nil },
		Now:     func() time.Time { return time.UnixMilli(now) },
		Changed: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, 12)
	round := func() {
		for i := range 64 {
			binary.LittleEndian.PutUint64(key, uint64(i))
			s.Register(codec.Hash(key), key, now+int64(i%7))
		}
		now += 10
		if _, err := s.Fire(1000, never); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		round()
	}
	if got := testing.AllocsPerRun(200, round); got > 0 {
		t.Errorf("%v allocations in a round of 64 timers, want 0", got)
	}
}
