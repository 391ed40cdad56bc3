package local

import (
	"context"
	"errors"
	"sync"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/rpc"
)

// MaxQueued is the number of messages that may wait in one direction.
const MaxQueued = 16384

// ErrStuckPeer ends a session whose peer does not receive.
var ErrStuckPeer = errors.New("peer does not receive: queue is full")

// Dialer opens sessions to one JobManager in this process.
type Dialer struct {
	group    *group.Group
	acceptor rpc.Acceptor
}

var _ rpc.Dialer = (*Dialer)(nil)

// NewDialer opens sessions to the JobManager that acceptor speaks for; their
// goroutines run in g.
func NewDialer(g *group.Group, acceptor rpc.Acceptor) *Dialer {
	return &Dialer{group: g, acceptor: acceptor}
}

// Dial opens a session at once.
func (d *Dialer) Dial(ctx context.Context, h rpc.SessionHandler) (rpc.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	handler, err := d.acceptor.Accept(ctx)
	if err != nil {
		return nil, err
	}
	near, far := newEnd("job manager"), newEnd("task manager")
	near.other, far.other = far, near
	if err = d.group.Go("session/job-manager", func(ctx context.Context) error { far.deliver(ctx, handler); return nil }); err != nil {
		return nil, err
	}
	if err = d.group.Go("session/task-manager", func(ctx context.Context) error { near.deliver(ctx, h); return nil }); err != nil {
		near.Close(err)
		return nil, err
	}
	return near, nil
}

// end is one end of a session: what its owner sends lands in the other end's inbox.
type end struct {
	peer  string
	other *end
	wake  chan struct{} // holds one token while something is to be looked at

	mu struct {
		sync.Mutex
		inbox []rpc.Message
		cause error // set once
	}
}

var _ rpc.Session = (*end)(nil)

func newEnd(peer string) *end { return &end{peer: peer, wake: make(chan struct{}, 1)} }

// Peer names the other side.
func (e *end) Peer() string { return e.peer }

// Send puts a message into the other end's inbox.
func (e *end) Send(m rpc.Message) error {
	o := e.other
	o.mu.Lock()
	if o.mu.cause != nil {
		o.mu.Unlock()
		return rpc.ErrSessionClosed
	}
	full := len(o.mu.inbox) >= MaxQueued
	if !full {
		o.mu.inbox = append(o.mu.inbox, m)
	}
	o.mu.Unlock()
	if full {
		e.Close(ErrStuckPeer)
		return rpc.ErrSessionClosed
	}
	o.ring()
	return nil
}

// Close ends both ends; the first cause stands at each.
func (e *end) Close(cause error) {
	if cause == nil {
		cause = rpc.ErrSessionClosed
	}
	for _, side := range []*end{e, e.other} {
		side.mu.Lock()
		if side.mu.cause == nil {
			side.mu.cause = cause
		}
		side.mu.Unlock()
		side.ring()
	}
}

func (e *end) ring() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// take empties the inbox. After the end was closed nothing more is delivered.
func (e *end) take() ([]rpc.Message, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.cause != nil {
		e.mu.inbox = nil
		return nil, e.mu.cause
	}
	in := e.mu.inbox
	e.mu.inbox = nil
	return in, nil
}

// deliver hands this end's inbox to its handler until the end is closed.
func (e *end) deliver(ctx context.Context, h rpc.SessionHandler) {
	for {
		in, cause := e.take()
		if cause != nil {
			h.Closed(e, cause)
			return
		}
		for _, m := range in {
			h.Receive(e, m)
		}
		if len(in) > 0 {
			continue
		}
		select {
		case <-e.wake:
		case <-ctx.Done():
			e.Close(context.Cause(ctx))
		}
	}
}
