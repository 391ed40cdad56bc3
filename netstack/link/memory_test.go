package link_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/netstack/link/linktest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	linktest.Run(t, func(*testing.T) linktest.Fixture {
		m := link.NewMemory(nil)
		return linktest.Fixture{Server: m.Host("a"), Client: m.Host("b"), Address: "a:0"}
	})
}

// held keeps what is sent until the test lets it go.
type held struct {
	pipes   []string
	deliver []func()
}

func (h *held) Carry(p link.Pipe, _ int, deliver func()) {
	h.pipes = append(h.pipes, p.String())
	h.deliver = append(h.deliver, deliver)
}

func pair(t *testing.T, m *link.Memory) (a, b link.Conn) {
	t.Helper()
	l, err := m.Host("a").Listen(t.Context(), "a:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted := make(chan link.Conn, 1)
	accept(t, l, accepted)
	b, err = m.Host("b").Dial(t.Context(), l.Address())
	if err != nil {
		t.Fatal(err)
	}
	return <-accepted, b
}

func TestCourierDecidesWhenFramesArrive(t *testing.T) {
	t.Parallel()
	h := &held{}
	a, b := pair(t, link.NewMemory(h))
	for _, s := range []string{"one", "two"} {
		if err := b.Send([]byte(s), buffer.View{}); err != nil {
			t.Fatal(err)
		}
	}
	b.Close()
	if want := []string{"b>a#1", "b>a#1", "b>a#1"}; !slices.Equal(h.pipes, want) {
		t.Fatalf("carried %v, want %v", h.pipes, want)
	}
	for i, want := range []string{"one", "two"} {
		h.deliver[i]()
		m, err := a.Recv()
		if err != nil || string(m.Parts[0]) != want {
			t.Errorf("got %v, %v", m, err)
		}
	}
	h.deliver[2]()
	if _, err := a.Recv(); !errors.Is(err, link.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := a.Send([]byte("late"), buffer.View{}); !errors.Is(err, link.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestCutEndsConnectionsAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	m := link.NewMemory(nil)
	a, b := pair(t, m)
	if err := b.Send([]byte("lost"), buffer.View{}); err != nil {
		t.Fatal(err)
	}
	m.Cut("a", "b")
	for _, c := range []link.Conn{a, b} {
		if _, err := c.Recv(); !errors.Is(err, link.ErrClosed) {
			t.Errorf("recv: %v", err)
		}
		if err := c.Send([]byte("x"), buffer.View{}); !errors.Is(err, link.ErrClosed) {
			t.Errorf("send: %v", err)
		}
	}
	if _, err := m.Host("b").Dial(t.Context(), "a:1"); !errors.Is(err, link.ErrRefused) {
		t.Errorf("dial: %v", err)
	}
	m.Heal("a", "b")
	l, err := m.Host("a").Listen(t.Context(), "a:77")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan link.Conn, 1)
	accept(t, l, accepted)
	if _, err := m.Host("b").Dial(t.Context(), "a:77"); err != nil {
		t.Errorf("dial after Heal: %v", err)
	}
	m.Kill("a")
	if _, err := (<-accepted).Recv(); !errors.Is(err, link.ErrClosed) {
		t.Errorf("recv after Kill: %v", err)
	}
}

func accept(t *testing.T, l link.Listener, accepted chan<- link.Conn) {
	t.Helper()
	linktest.Start(t, func() error {
		c, err := l.Accept(t.Context())
		accepted <- c
		return err
	})
}
