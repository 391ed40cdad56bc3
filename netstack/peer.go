package netstack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/netstack/wire"
)

const (
	helloTimeout = 10 * time.Second       // for the peer's Hello
	firstBackoff = 50 * time.Millisecond  // between attempts to dial
	maxBackoff   = 500 * time.Millisecond //
)

// peer is another process, and the connection to it. Guarded by Stack.mu.
type peer struct {
	process
	address string
	conn    *connection    // nil if there is none
	dialing bool           // a goroutine tries to connect
	waiting []*remoteInput // channels to open once there is a connection
	timer   *group.Timer   // bounds how long they wait, if it is not ours to dial
}

// need wants a connection to a process, and a channel over it if in is not nil.
func (s *Stack) need(at Location, in *remoteInput) {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		if in != nil {
			in.lost(ErrClosed)
		}
		return
	}
	id := process{at.TaskManager, at.Incarnation}
	if in == nil && !s.dials(id) {
		s.mu.Unlock()
		return // it will come if it needs us
	}
	p := s.peerLocked(id)
	if conn := p.conn; conn != nil {
		s.mu.Unlock()
		if in != nil {
			conn.openInput(in)
		}
		return
	}
	p.address = at.Address
	if in != nil {
		p.waiting = append(p.waiting, in)
	}
	s.connectLocked(p)
	s.mu.Unlock()
}

func (s *Stack) peerLocked(id process) *peer {
	p := s.mu.peers[id]
	if p == nil {
		p = &peer{process: id}
		s.mu.peers[id] = p
	}
	return p
}

// connectLocked dials if that is ours to do, else it waits for the peer to.
func (s *Stack) connectLocked(p *peer) {
	switch {
	case !s.dials(p.process):
		if p.timer == nil && len(p.waiting) > 0 {
			p.timer = s.group.AfterFunc("connect-timeout", s.options.ConnectTimeout, func(context.Context) {
				s.unreachable(p, errors.New("the peer did not connect"))
			})
		}
	case !p.dialing:
		p.dialing = true
		body := func(ctx context.Context) error { s.connect(ctx, p); return nil }
		if err := s.group.GoThen("link/reader", body, s.readerEnded); err != nil {
			p.dialing = false
		}
	}
}

// dials says whether it is for this process to dial another (DECISIONS 18).
func (s *Stack) dials(p process) bool {
	return string(s.self.id[:]) < string(p.id[:])
}

// connect dials until there is a connection or the time is over, and then is the
// connection's reader.
func (s *Stack) connect(ctx context.Context, p *peer) {
	deadline := time.Now().Add(s.options.ConnectTimeout)
	jitter := rand.New(rand.NewPCG(uint64(s.self.incarnation), uint64(p.incarnation)))
	backoff := firstBackoff
	for {
		c, err := s.dial(ctx, p, deadline)
		if err == nil {
			c.run(ctx)
			return
		}
		s.log.Info("no data connection yet", zap.Stringer("peer", p.process), zap.Error(err))
		pause := backoff/2 + time.Duration(jitter.Int64N(int64(backoff)))
		if ctx.Err() != nil || time.Now().Add(pause).After(deadline) {
			s.unreachable(p, err)
			return
		}
		backoff = min(2*backoff, maxBackoff)
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// dial makes one attempt.
func (s *Stack) dial(ctx context.Context, p *peer, deadline time.Time) (*connection, error) {
	s.mu.Lock()
	address := p.address
	s.mu.Unlock()
	dialCtx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	l, err := s.options.Transport.Dial(dialCtx, address)
	if err != nil {
		return nil, err
	}
	h, err := s.greet(l, p.process)
	if err != nil {
		l.Close()
		return nil, err
	}
	c, err := s.connected(l, h)
	if err != nil {
		l.Close()
	}
	return c, err
}

// greet says Hello first and checks the answer.
func (s *Stack) greet(l link.Conn, to process) (wire.Hello, error) {
	if err := l.Send(s.hello(to).Append(nil), buffer.View{}); err != nil {
		return wire.Hello{}, err
	}
	h, err := s.recvHello(l)
	if err != nil {
		return h, err
	}
	if from := (process{h.TaskManager, h.Incarnation}); from != to {
		return h, fmt.Errorf("%s answers instead of %s: %w", from, to, ErrFenced)
	}
	return h, nil
}

// answer is the reader of a connection that somebody made to us: it waits for the
// peer's Hello, checks it and says its own.
func (s *Stack) answer(ctx context.Context, l link.Conn) {
	h, err := s.recvHello(l)
	from := process{h.TaskManager, h.Incarnation}
	code := wire.CodeProtocol
	switch {
	case errors.Is(err, wire.ErrVersion):
		code = wire.CodeVersion
	case err != nil:
	case process{h.Peer, h.PeerIncarnation} != s.self:
		code, err = wire.CodeFenced, fmt.Errorf("this is %s, not %s: %w", s.self, process{h.Peer, h.PeerIncarnation}, ErrFenced)
	case s.dials(from) || from.id == s.self.id:
		err = fmt.Errorf("%s is not to dial %s: %w", from, s.self, ErrProtocol)
	default:
		err = l.Send(s.hello(from).Append(nil), buffer.View{})
	}
	var c *connection
	if err == nil {
		c, err = s.connected(l, h)
	}
	if err != nil {
		s.log.Info("data connection refused", zap.String("remote", l.Remote()), zap.Error(err))
		l.Send(wire.Failure{Code: code, Message: err.Error()}.Append(nil), buffer.View{})
		l.Close()
		return
	}
	c.run(ctx)
}

func (s *Stack) hello(to process) wire.Hello {
	return wire.Hello{
		Cluster:         s.options.Cluster,
		TaskManager:     s.self.id,
		Incarnation:     s.self.incarnation,
		Peer:            to.id,
		PeerIncarnation: to.incarnation,
		Checksums:       s.options.Checksums,
	}
}

// recvHello waits for the peer's first frame, but not for ever and not beyond Close.
func (s *Stack) recvHello(l link.Conn) (wire.Hello, error) {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return wire.Hello{}, ErrClosed
	}
	s.mu.greeting[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mu.greeting, l)
	}()
	defer s.group.AfterFunc("hello-timeout", helloTimeout, func(context.Context) { l.Close() }).Stop()
	m, err := l.Recv()
	if err != nil {
		return wire.Hello{}, err
	}
	f, err := wire.DecodeControl(gather(m, make([]byte, 0, wire.MaxControl)))
	if err != nil {
		return wire.Hello{}, err
	}
	switch f := f.(type) {
	case wire.Hello:
		if f.Cluster != s.options.Cluster {
			return f, fmt.Errorf("cluster %q, this is %q: %w", f.Cluster, s.options.Cluster, ErrRefused)
		}
		return f, nil
	case wire.Failure:
		return wire.Hello{}, fmt.Errorf("%s: %w", f.Message, errorOf(f.Code))
	default:
		return wire.Hello{}, fmt.Errorf("first frame is a %T: %w", f, ErrProtocol)
	}
}

// gather returns a message in one piece, or nothing if it is longer than a control
// frame may be.
func gather(m link.Message, scratch []byte) []byte {
	if len(m.Parts) == 1 {
		return m.Parts[0]
	}
	n := m.Len()
	if n > cap(scratch) {
		return nil
	}
	return scratch[:m.CopyFrom(0, scratch[:n])]
}

// connected makes a connection the one to its process, instead of an earlier one.
func (s *Stack) connected(l link.Conn, h wire.Hello) (*connection, error) {
	c := newConnection(s, l, h)
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	p := s.peerLocked(c.peer)
	old, waiting := p.conn, p.waiting
	p.conn, p.waiting, p.dialing = c, nil, false
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	s.mu.Unlock()
	if old != nil {
		old.end(ErrReplaced)
	}
	for _, in := range waiting {
		c.openInput(in)
	}
	s.log.Info("data connection", zap.Stringer("peer", c.peer), zap.String("remote", l.Remote()))
	return c, nil
}

// disconnected forgets a connection that ended.
func (s *Stack) disconnected(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.mu.peers[c.peer]; p != nil && p.conn == c {
		delete(s.mu.peers, c.peer)
	}
}

// unreachable fails the channels that waited for a connection.
func (s *Stack) unreachable(p *peer, err error) {
	s.mu.Lock()
	if p.conn != nil {
		s.mu.Unlock()
		return
	}
	waiting, address := p.waiting, p.address
	p.waiting = nil
	if s.mu.peers[p.process] == p {
		delete(s.mu.peers, p.process)
	}
	s.mu.Unlock()
	s.log.Warn("no data connection", zap.Stringer("peer", p.process), zap.String("address", address), zap.Error(err))
	for _, in := range waiting {
		in.lost(fmt.Errorf("%w %s at %s: %w", ErrUnreachable, p.process, address, err))
	}
}
