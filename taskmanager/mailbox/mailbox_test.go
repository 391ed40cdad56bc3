package mailbox_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/taskmanager/mailbox"
)

func TestUrgentLettersComeFirst(t *testing.T) {
	t.Parallel()
	var flag atomic.Bool
	m := mailbox.New[string](10, &flag)
	for _, l := range []struct {
		p mailbox.Priority
		s string
	}{
		{mailbox.Normal, "event"}, {mailbox.Internal, "timer"}, {mailbox.Notification, "complete 1"},
		{mailbox.Urgent, "trigger"}, {mailbox.Notification, "abort 2"}, {mailbox.Normal, "event 2"},
	} {
		if err := m.Post(l.p, l.s); err != nil {
			t.Fatal(err)
		}
	}
	if !flag.Load() {
		t.Error("the flag was not set")
	}
	want := []string{"complete 1", "abort 2", "trigger", "timer", "event", "event 2"}
	if got := take(m); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFullClassRefusesAndOthersDoNot(t *testing.T) {
	t.Parallel()
	var flag atomic.Bool
	m := mailbox.New[string](2, &flag)
	for range 2 {
		if err := m.Post(mailbox.Normal, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Post(mailbox.Normal, "x"); !errors.Is(err, mailbox.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	if err := m.Post(mailbox.Notification, "y"); err != nil {
		t.Errorf("another class: %v", err)
	}
}

func TestClosedMailboxRefusesAndReturnsTheRest(t *testing.T) {
	t.Parallel()
	var flag atomic.Bool
	m := mailbox.New[string](2, &flag)
	if err := m.Post(mailbox.Normal, "x"); err != nil {
		t.Fatal(err)
	}
	if left := m.Close(); !slices.Equal(left, []string{"x"}) {
		t.Errorf("got %v", left)
	}
	if err := m.Post(mailbox.Normal, "x"); !errors.Is(err, mailbox.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if left := m.Close(); len(left) != 0 {
		t.Errorf("closed twice: %v", left)
	}
}

// TestModel compares with a list per class.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var flag atomic.Bool
		const capacity = 20
		m := mailbox.New[int](capacity, &flag)
		var lists [4][]int
		next := 0
		rt.Repeat(map[string]func(*rapid.T){
			"post": func(rt *rapid.T) {
				p := rapid.IntRange(0, 3).Draw(rt, "priority")
				next++
				err := m.Post(mailbox.Priority(p), next)
				if full := len(lists[p]) == capacity; full != errors.Is(err, mailbox.ErrFull) {
					rt.Fatalf("full=%v and %v", full, err)
				} else if !full {
					lists[p] = append(lists[p], next)
				}
			},
			"take": func(rt *rapid.T) {
				got, ok := m.Take()
				for p := range lists {
					if len(lists[p]) > 0 {
						if !ok || got != lists[p][0] {
							rt.Fatalf("got %d %v, want %d", got, ok, lists[p][0])
						}
						lists[p] = lists[p][1:]
						return
					}
				}
				if ok {
					rt.Fatalf("got %d from an empty mailbox", got)
				}
			},
		})
	})
}

// TestNoLetterIsMissed posts from several goroutines to a reader that clears the
// flag, takes all and sleeps.
func TestNoLetterIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const posters, letters = 4, 500
		var flag atomic.Bool
		m := mailbox.New[int](posters*letters, &flag)
		g := group.New(t.Context(), "test")
		for range posters {
			post := func(p mailbox.Priority) {
				for i := range letters {
					if err := m.Post(p, i); err != nil {
						t.Error(err)
					}
				}
			}
			if err := g.Go("poster", func(context.Context) error { post(mailbox.Normal); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for got := 0; got < posters*letters; {
			<-m.Wake()
			flag.Store(false)
			got += len(take(m))
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPostAndTakeAllocateNothing(t *testing.T) {
	var flag atomic.Bool
	m := mailbox.New[int](64, &flag)
	got := testing.AllocsPerRun(100, func() {
		for i := range 8 {
			if err := m.Post(mailbox.Normal, i); err != nil {
				t.Fatal(err)
			}
		}
		for range 8 {
			m.Take()
		}
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}

func take[L any](m *mailbox.Mailbox[L]) (all []L) {
	for {
		l, ok := m.Take()
		if !ok {
			return all
		}
		all = append(all, l)
	}
}
