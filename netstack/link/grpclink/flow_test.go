package grpclink

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/link"
)

// Both ends send more than all windows hold before either reads (field reports B57, B58):
// a blocked send does not keep its own end from receiving.
func TestBothDirectionsMayBeFull(t *testing.T) {
	t.Parallel()
	const frames, size = 600, link.MaxFrame - 2 // 18 MiB each way
	near, far := pair(t)
	g := group.New(context.Background(), "senders")
	var sent [2]chan int
	for i, end := range []link.Conn{near, far} {
		sent[i] = make(chan int, frames)
		err := g.Go("send", func(context.Context) error {
			defer close(sent[i])
			for n := range frames {
				if err := end.Send([]byte{byte(n), byte(n >> 8)}, buffer.Wrap(make([]byte, size)).Own()); err != nil {
					return err
				}
				sent[i] <- n
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// More than half of a window is under way on both sides before anybody reads.
	for n := range Window / size / 2 {
		for i := range sent {
			if got, ok := <-sent[i]; !ok || got != n {
				t.Fatalf("sent %d, %t, want %d", got, ok, n)
			}
		}
	}
	if n := len(sent[0]); n > frames/2 {
		t.Errorf("%d frames were sent and none read: the window does not bound them", n)
	}
	for n := range frames {
		for _, end := range []link.Conn{far, near} {
			m, err := end.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if head := m.Prefix(make([]byte, 2)); m.Len() != size+2 || int(head[0])|int(head[1])<<8 != n {
				t.Fatalf("frame %d has %d bytes and begins with %v", n, m.Len(), head[:2])
			}
		}
	}
	if err := g.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// Nobody reads; a send that waits ends with its connection (B57).
func TestBlockedSendEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	const size = link.MaxFrame - 1
	near, _ := pair(t)
	g := group.New(context.Background(), "sender")
	sent := make(chan struct{}, 1<<16)
	failed := make(chan error, 1)
	err := g.Go("send", func(context.Context) error {
		defer close(sent)
		for {
			if err := near.Send([]byte("x"), buffer.Wrap(make([]byte, size)).Own()); err != nil {
				failed <- err
				return nil
			}
			sent <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range Window / size / 2 {
		if _, ok := <-sent; !ok {
			t.Fatal(<-failed)
		}
	}
	if err := near.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, link.ErrClosed) {
		t.Errorf("send: %v", err)
	}
	if err := g.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// What we send to find dead peers must be what we allow (B59).
func TestOwnPingsAreAllowed(t *testing.T) {
	t.Parallel()
	const leastOfGRPC = 10 * time.Second // a shorter time is raised to it, silently
	for _, every := range []time.Duration{clientKeepalive.Time, serverKeepalive.Time} {
		if every < leastOfGRPC || every < 2*enforcement.MinTime {
			t.Errorf("a ping every %s, but at most one per %s is allowed", every, enforcement.MinTime)
		}
	}
	if !clientKeepalive.PermitWithoutStream || !enforcement.PermitWithoutStream {
		t.Error("an idle connection must be pinged, and may be")
	}
	if slices.Contains([]time.Duration{clientKeepalive.Timeout, serverKeepalive.Timeout}, 0) {
		t.Error("a dead peer is never found")
	}
}
