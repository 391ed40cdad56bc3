package linktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/link"
)

// Fixture is a network of two ends, fresh for each test.
type Fixture struct {
	Server, Client link.Transport
	Address        string // where Server may listen, with port 0
}

// patience bounds what should not take long; only a broken implementation uses it up.
const patience = 30 * time.Second

// Run runs the suite.
func Run(t *testing.T, make func(t *testing.T) Fixture) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, f Fixture)
	}{
		{"frames arrive whole and in order, both ways", framesArrive},
		{"the payload is released once and the head is free after Send", payloadReleased},
		{"heads of any length arrive", longHeads},
		{"a frame that is too large is refused", tooLarge},
		{"Close ends a waiting Recv at both ends", closeEndsRecv},
		{"Close ends a waiting Send", closeEndsSend},
		{"Send after Close fails and releases", sendAfterClose},
		{"frames sent before Close are not held back", closeAfterSend},
		{"nobody listens", nobodyListens},
		{"a closed listener accepts nothing", closedListener},
		{"Accept ends with its context", acceptContext},
		{"Dial ends with its context", dialContext},
		{"a taken address is refused", takenAddress},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, make(t)) })
	}
}

// released counts how often a payload was given back.
type released struct {
	n     atomic.Int32
	again chan struct{} // has a token after n changed; nil if nobody awaits it
}

func (r *released) Recycle(*buffer.Buffer) {
	r.n.Add(1)
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// await waits until n payloads were given back: networks may do so on their own time.
func (r *released) await(t *testing.T, n int32) {
	t.Helper()
	late := time.After(patience)
	for r.n.Load() < n {
		select {
		case <-r.again:
		case <-late:
			t.Fatalf("%d payloads released, want %d", r.n.Load(), n)
		}
	}
	if got := r.n.Load(); got != n {
		t.Errorf("%d payloads released, want %d", got, n)
	}
}

// payload returns n bytes that depend on seed.
func payload(n, seed int, r *released) buffer.View {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + seed)
	}
	w := buffer.Wrap(b)
	if r != nil {
		w.SetRecycler(r)
	}
	return w.Own()
}

func connect(t *testing.T, f Fixture) (server, client link.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := f.Server.Listen(ctx, f.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	g := Start(t, func() error {
		server, err = l.Accept(ctx)
		return err
	})
	client, dialErr := f.Client.Dial(ctx, l.Address())
	if dialErr != nil {
		t.Fatal(dialErr)
	}
	t.Cleanup(func() { client.Close() })
	wait(t, g)
	t.Cleanup(func() { server.Close() })
	return server, client
}

// Start runs fn on a goroutine whose group it returns.
func Start(t *testing.T, fn func() error) *group.Group {
	t.Helper()
	g := group.New(context.Background(), "linktest")
	if err := g.Go("linktest", func(context.Context) error { return fn() }); err != nil {
		t.Fatal(err)
	}
	return g
}

func wait(t *testing.T, g *group.Group) {
	t.Helper()
	done := make(chan error, 1)
	w := group.New(context.Background(), "wait")
	w.Go("wait", func(context.Context) error { done <- g.Wait(); return nil })
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("still waiting")
	}
}

func gather(m link.Message) []byte {
	b := make([]byte, m.Len())
	m.CopyFrom(0, b)
	return b
}

// sizes of payloads: none, small, around the pieces of networks, the largest.
var sizes = []int{0, 1, 100, 16379, 16384, 16385, 32000, link.MaxFrame - 10}

func framesArrive(t *testing.T, f Fixture) {
	server, client := connect(t, f)
	const rounds = 20
	send := func(c link.Conn) func() error {
		return func() error {
			for i := range rounds * len(sizes) {
				head := fmt.Appendf(nil, "%010d", i)
				if err := c.Send(head, payload(sizes[i%len(sizes)], i, nil)); err != nil {
					return fmt.Errorf("send %d: %w", i, err)
				}
			}
			return nil
		}
	}
	recv := func(c link.Conn) func() error {
		return func() error {
			for i := range rounds * len(sizes) {
				m, err := c.Recv()
				if err != nil {
					return fmt.Errorf("recv %d: %w", i, err)
				}
				want := fmt.Appendf(nil, "%010d", i)
				want = append(want, payload(sizes[i%len(sizes)], i, nil).Bytes()...)
				if got := gather(m); !bytes.Equal(got, want) {
					return fmt.Errorf("frame %d: got %d bytes, want %d, or others", i, len(got), len(want))
				}
				if got := m.Prefix(make([]byte, 64)); !bytes.HasPrefix(want, got[:min(64, len(got))]) || len(got) < min(64, len(want)) {
					return fmt.Errorf("frame %d: prefix of %d bytes is wrong", i, len(got))
				}
			}
			return nil
		}
	}
	for _, g := range []*group.Group{Start(t, send(server)), Start(t, recv(client)), Start(t, send(client)), Start(t, recv(server))} {
		wait(t, g)
	}
}

func payloadReleased(t *testing.T, f Fixture) {
	server, client := connect(t, f)
	r := released{again: make(chan struct{}, 1)}
	const n = 50
	g := Start(t, func() error {
		for i := range n {
			m, err := server.Recv()
			if err != nil {
				return err
			}
			if got := gather(m)[0]; got != byte(i) {
				return fmt.Errorf("head %d, want %d", got, i)
			}
		}
		return server.Send([]byte("done"), buffer.View{})
	})
	head := make([]byte, 1)
	for i := range n {
		head[0] = byte(i)
		if err := client.Send(head, payload(20000, i, &r)); err != nil {
			t.Fatal(err)
		}
		head[0] = 0xFF
	}
	if _, err := client.Recv(); err != nil {
		t.Fatal(err)
	}
	wait(t, g)
	client.Close()
	r.await(t, n)
}

func longHeads(t *testing.T, f Fixture) {
	server, client := connect(t, f)
	r := released{again: make(chan struct{}, 1)}
	var want [][]byte
	for _, head := range []int{63, 64, 65, 1000, 10000} {
		for _, body := range []int{0, 100, 20000} {
			h := bytes.Repeat([]byte{byte(head)}, head)
			if err := client.Send(h, payload(body, 3, &r)); err != nil {
				t.Fatalf("head of %d, payload of %d bytes: %v", head, body, err)
			}
			want = append(want, append(h, payload(body, 3, nil).Bytes()...))
		}
	}
	for _, w := range want {
		m, err := server.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if got := gather(m); !bytes.Equal(got, w) {
			t.Fatalf("got %d bytes, want %d, or others", len(got), len(w))
		}
	}
	client.Close()
	r.await(t, int32(len(want)))
}

func tooLarge(t *testing.T, f Fixture) {
	_, client := connect(t, f)
	var r released
	if err := client.Send(make([]byte, 10), payload(link.MaxFrame-9, 0, &r)); !errors.Is(err, link.ErrFrameTooLarge) {
		t.Errorf("got %v", err)
	}
	if r.n.Load() != 1 {
		t.Errorf("released %d times", r.n.Load())
	}
}

func closeEndsRecv(t *testing.T, f Fixture) {
	server, client := connect(t, f)
	recv := func(c link.Conn) *group.Group {
		return Start(t, func() error {
			if m, err := c.Recv(); err == nil {
				return fmt.Errorf("got a frame of %d bytes", m.Len())
			}
			return nil
		})
	}
	a, b := recv(server), recv(client)
	client.Close()
	wait(t, a)
	wait(t, b)
	if err := client.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func closeEndsSend(t *testing.T, f Fixture) {
	for _, far := range []bool{false, true} {
		server, client := connect(t, f)
		r := released{again: make(chan struct{}, 1)}
		var sent atomic.Int32
		g := Start(t, func() error {
			for { // until the network is full, and then until the end
				sent.Add(1)
				if err := client.Send([]byte("head"), payload(32000, 1, &r)); err != nil {
					return nil
				}
			}
		})
		if _, err := server.Recv(); err != nil {
			t.Fatal(err)
		}
		if far {
			server.Close()
		} else {
			client.Close()
		}
		wait(t, g)
		client.Close()
		server.Close()
		r.await(t, sent.Load())
	}
}

func sendAfterClose(t *testing.T, f Fixture) {
	_, client := connect(t, f)
	client.Close()
	var r released
	if err := client.Send([]byte("head"), payload(10, 0, &r)); err == nil {
		t.Error("want an error")
	}
	if r.n.Load() != 1 {
		t.Errorf("released %d times", r.n.Load())
	}
	if _, err := client.Recv(); err == nil {
		t.Error("want an error of Recv")
	}
}

func closeAfterSend(t *testing.T, f Fixture) {
	server, client := connect(t, f)
	g := Start(t, func() error {
		m, err := client.Recv()
		if err != nil {
			return err
		}
		if got := string(gather(m)); got != "why" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	if err := server.Send([]byte("why"), buffer.View{}); err != nil {
		t.Fatal(err)
	}
	server.Close()
	wait(t, g)
}

func nobodyListens(t *testing.T, f Fixture) {
	l, err := f.Server.Listen(t.Context(), f.Address)
	if err != nil {
		t.Fatal(err)
	}
	address := l.Address()
	l.Close()
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if c, err := f.Client.Dial(ctx, address); err == nil {
		c.Close()
		t.Error("want Dial to fail")
	}
}

func closedListener(t *testing.T, f Fixture) {
	l, err := f.Server.Listen(t.Context(), f.Address)
	if err != nil {
		t.Fatal(err)
	}
	g := Start(t, func() error {
		if _, err := l.Accept(context.Background()); !errors.Is(err, link.ErrClosed) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	l.Close()
	wait(t, g)
	if _, err := l.Accept(t.Context()); !errors.Is(err, link.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func acceptContext(t *testing.T, f Fixture) {
	l, err := f.Server.Listen(t.Context(), f.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := l.Accept(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func dialContext(t *testing.T, f Fixture) {
	l, err := f.Server.Listen(t.Context(), f.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if c, err := f.Client.Dial(ctx, l.Address()); err == nil {
		c.Close()
		t.Error("want Dial to fail")
	}
}

func takenAddress(t *testing.T, f Fixture) {
	l, err := f.Server.Listen(t.Context(), f.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if second, err := f.Server.Listen(t.Context(), l.Address()); err == nil {
		second.Close()
		t.Error("want Listen to fail")
	}
}
