package local

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/rpc"
)

// listener notes what it hears; it is read only while the bubble is at rest.
type listener struct {
	heard  []rpc.Message
	closed []error
	sess   rpc.Session
}

func (l *listener) Accept(context.Context) (rpc.SessionHandler, error) { return l, nil }

func (l *listener) Receive(s rpc.Session, m rpc.Message) { l.sess = s; l.heard = append(l.heard, m) }
func (l *listener) Closed(_ rpc.Session, cause error)    { l.closed = append(l.closed, cause) }

func TestSessionDeliversInOrderAndClosesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "test")
		jm, tm := &listener{}, &listener{}
		s, err := NewDialer(g, jm).Dial(t.Context(), tm)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := s.Send(rpc.DeclineCheckpoint{Checkpoint: 1, Message: string(rune('a' + i%26))}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(jm.heard) != 100 {
			t.Fatalf("heard %d messages, want 100", len(jm.heard))
		}
		for i, m := range jm.heard {
			if got, want := m.(rpc.DeclineCheckpoint).Message, string(rune('a'+i%26)); got != want {
				t.Fatalf("message %d is %q, want %q", i, got, want)
			}
		}
		if err := jm.sess.Send(rpc.HeartbeatAck{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		why := errors.New("enough")
		jm.sess.Close(why)
		s.Close(errors.New("too late"))
		synctest.Wait()
		if len(tm.heard) != 1 || len(tm.closed) != 1 || len(jm.closed) != 1 || tm.closed[0] != why || jm.closed[0] != why {
			t.Fatalf("task manager heard %v and was closed by %v; job manager by %v", tm.heard, tm.closed, jm.closed)
		}
		if err := s.Send(rpc.HeartbeatAck{}); !errors.Is(err, rpc.ErrSessionClosed) {
			t.Fatalf("send after close: %v", err)
		}
		if err := g.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// stuck never returns from its first message until released.
type stuck struct{ release chan struct{} }

func (s stuck) Accept(context.Context) (rpc.SessionHandler, error) { return s, nil }

func (s stuck) Receive(rpc.Session, rpc.Message) { <-s.release }
func (s stuck) Closed(rpc.Session, error)        {}

func TestFullQueueEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "test")
		tm, jm := &listener{}, stuck{make(chan struct{})}
		s, err := NewDialer(g, jm).Dial(t.Context(), tm)
		if err != nil {
			t.Fatal(err)
		}
		var sent int
		for s.Send(rpc.HeartbeatAck{}) == nil {
			if sent++; sent == 1 {
				synctest.Wait()
			}
		}
		if sent != MaxQueued+1 {
			t.Errorf("%d messages were taken, want one under way and %d queued", sent, MaxQueued)
		}
		synctest.Wait()
		if len(tm.closed) != 1 || !errors.Is(tm.closed[0], ErrStuckPeer) {
			t.Errorf("closed by %v", tm.closed)
		}
		close(jm.release)
		if err := g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
