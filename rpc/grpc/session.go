package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/rpc"
)

// MaxQueued is the number of messages that may wait in a session before the peer
// counts as stuck.
const MaxQueued = 16384

// ErrStuckPeer ends a session whose peer does not read.
var ErrStuckPeer = errors.New("peer does not read: queue is full")

// stream is one side of a gRPC stream in terms of rpc messages.
type stream interface {
	send(m rpc.Message) error
	recv() (rpc.Message, error)
}

// session is one end of a conversation. Any goroutine may Send and Close.
type session struct {
	peer   string
	stream stream
	cancel context.CancelCauseFunc
	wake   chan struct{} // holds one token while the queue may hold messages

	mu struct {
		sync.Mutex
		queue []rpc.Message
		cause error // set once: why it ended
	}
}

var _ rpc.Session = (*session)(nil)

func newSession(peer string, st stream, cancel context.CancelCauseFunc) *session {
	return &session{peer: peer, stream: st, cancel: cancel, wake: make(chan struct{}, 1)}
}

// Peer names the other side.
func (s *session) Peer() string { return s.peer }

// Send queues a message.
func (s *session) Send(m rpc.Message) error {
	s.mu.Lock()
	if s.mu.cause != nil {
		s.mu.Unlock()
		return rpc.ErrSessionClosed
	}
	full := len(s.mu.queue) >= MaxQueued
	if !full {
		s.mu.queue = append(s.mu.queue, m)
	}
	s.mu.Unlock()
	if full {
		s.Close(ErrStuckPeer)
		return rpc.ErrSessionClosed
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// Close ends the session; the first cause stands.
func (s *session) Close(cause error) {
	if cause == nil {
		cause = rpc.ErrSessionClosed
	}
	s.mu.Lock()
	first := s.mu.cause == nil
	if first {
		s.mu.cause = cause
	}
	s.mu.Unlock()
	if first {
		s.cancel(cause)
	}
}

// cause returns why the session ended, or nil.
func (s *session) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.cause
}

func (s *session) take() []rpc.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.mu.queue
	s.mu.queue = nil
	return q
}

// write sends what is queued until the session ends, or the group that runs it.
func (s *session) write(ctx, owner context.Context) error {
	for {
		for _, m := range s.take() {
			if err := s.stream.send(m); err != nil {
				s.Close(fmt.Errorf("send to %s: %w", s.peer, err))
				return nil
			}
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil
		case <-owner.Done():
			s.Close(context.Cause(owner))
			return nil
		}
	}
}

// read delivers what arrives until the stream ends, and then says so.
func (s *session) read(h rpc.SessionHandler) error {
	for {
		m, err := s.stream.recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = rpc.ErrSessionClosed
			}
			s.Close(ErrorOf(err))
			break
		}
		h.Receive(s, m)
	}
	cause := s.cause()
	h.Closed(s, cause)
	return cause
}

// start runs the writer of a session in g until ctx ends.
func (s *session) start(ctx context.Context, g *group.Group) error {
	return g.GoThen("session/write "+s.peer, func(owner context.Context) error { return s.write(ctx, owner) }, func(err error) {
		if err != nil {
			s.Close(err)
		}
	})
}
