package grpclink

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/link"
)

func newTransport(t *testing.T) *Transport {
	g := group.New(context.Background(), "test")
	t.Cleanup(func() {
		if err := g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return New(g, Options{Client: insecure.NewCredentials(), Server: insecure.NewCredentials()})
}

// pair returns both ends of a connection over loopback.
func pair(t *testing.T) (near, far link.Conn) {
	tr := newTransport(t)
	l, err := tr.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if near, err = tr.Dial(t.Context(), l.Address()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = near.Close(), far.Close(), l.Close() })
	return near, far
}

// tracked is a view whose release is counted.
type tracker struct{ released chan struct{} }

func (tr tracker) Recycle(*buffer.Buffer) { tr.released <- struct{}{} }

func (tr tracker) view(b []byte) buffer.View {
	buf := buffer.Wrap(b)
	buf.SetRecycler(tr)
	return buf.Own()
}

func content(m link.Message) []byte { return bytes.Join(m.Parts, nil) }

func TestFramesArriveWholeBothWays(t *testing.T) {
	near, far := pair(t)
	tr := tracker{make(chan struct{}, 100)}
	sizes := []int{0, 1, 1000, 1023, 1024, 1025, 16 << 10, 20000, link.MaxFrame - 8}
	for _, ends := range [][2]link.Conn{{near, far}, {far, near}} {
		for i, n := range sizes {
			head := []byte{byte(i), 1, 2, 3, 4, 5, 6, 7}
			want := append(bytes.Clone(head), bytes.Repeat([]byte{byte(i + 1)}, n)...)
			if err := ends[0].Send(head, tr.view(bytes.Clone(want[8:]))); err != nil {
				t.Fatal(err)
			}
			clear(head) // it is the caller's again
			m, err := ends[1].Recv()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(content(m), want) {
				t.Fatalf("frame with %d payload bytes arrived as %d bytes that differ", n, m.Len())
			}
		}
	}
	for range 2 * len(sizes) {
		<-tr.released
	}
	if err := near.Send([]byte("head only"), buffer.View{}); err != nil {
		t.Fatal(err)
	}
	if m, err := far.Recv(); err != nil || string(content(m)) != "head only" {
		t.Fatalf("%q, %v", content(m), err)
	}
}

func TestClosedConnectionReleasesWhatItIsGiven(t *testing.T) {
	near, far := pair(t)
	tr := tracker{make(chan struct{}, 10)}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Recv(); !errors.Is(err, link.ErrClosed) {
		t.Fatalf("receive: %v", err)
	}
	for range 3 {
		if err := near.Send([]byte("x"), tr.view(make([]byte, 4096))); !errors.Is(err, link.ErrClosed) {
			t.Fatalf("send: %v", err)
		}
		<-tr.released
	}
	if _, err := far.Recv(); !errors.Is(err, link.ErrClosed) {
		t.Fatalf("receive at the closed end: %v", err)
	}
}

func TestOversizeFrameIsRefused(t *testing.T) {
	near, _ := pair(t)
	tr := tracker{make(chan struct{}, 1)}
	if err := near.Send(make([]byte, 8), tr.view(make([]byte, link.MaxFrame))); !errors.Is(err, link.ErrFrameTooLarge) {
		t.Fatalf("send: %v", err)
	}
	<-tr.released
}

func TestDialSaysThatNobodyListens(t *testing.T) {
	tr := newTransport(t)
	l, err := tr.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Address()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Dial(t.Context(), address); !errors.Is(err, link.ErrRefused) {
		t.Fatalf("dial: %v", err)
	}
	if _, err := l.Accept(t.Context()); !errors.Is(err, link.ErrClosed) {
		t.Fatalf("accept: %v", err)
	}
}

// A received frame costs its share of gRPC and nothing of ours that grows.
func BenchmarkSegment(b *testing.B) {
	g := group.New(context.Background(), "bench")
	tr := New(g, Options{Client: insecure.NewCredentials(), Server: insecure.NewCredentials()})
	l, err := tr.Listen(b.Context(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	near, err := tr.Dial(b.Context(), l.Address())
	if err != nil {
		b.Fatal(err)
	}
	far, err := l.Accept(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	payload, head := make([]byte, 32704), make([]byte, 32)
	dst := make([]byte, 32768)
	err = g.Go("receive", func(context.Context) error {
		for {
			m, err := far.Recv()
			if err != nil {
				return nil
			}
			m.CopyFrom(0, dst)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if err := near.Send(head, buffer.Wrap(payload).Own()); err != nil {
			b.Fatal(err)
		}
	}
	_ = near.Close()
	if err := g.Stop(context.Background()); err != nil {
		b.Error(err)
	}
}
