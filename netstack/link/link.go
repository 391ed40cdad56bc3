package link

import (
	"context"

	"github.com/weirflow/weir/netstack/buffer"
)

// MaxFrame is the largest frame in bytes, head and payload together. Send and Recv
// answer a larger one with [ErrFrameTooLarge].
const MaxFrame = 32768

// Transport makes connections. Any goroutine may call it.
type Transport interface {
	// Listen takes connections at an address; port 0 means any free one.
	Listen(ctx context.Context, address string) (Listener, error)
	// Dial opens a connection to an address. ctx bounds the attempt, not the
	// connection.
	Dial(ctx context.Context, address string) (Conn, error)
}

// Listener takes connections at one address.
type Listener interface {
	// Accept waits for the next connection. It returns [ErrClosed] after Close.
	Accept(ctx context.Context) (Conn, error)
	// Address is where it listens, with the port it got.
	Address() string
	// Close stops taking connections; those that were accepted live on. Idempotent.
	Close() error
}

// Conn is one connection. One goroutine at a time calls Send, one at a time Recv;
// Close is for any.
type Conn interface {
	// Send sends one frame: head followed by the payload's bytes. It may wait for
	// the network. head is the caller's again when Send returns; the payload's
	// reference is taken over and released once its bytes are no longer needed, at
	// once if Send fails. A zero payload is none. A failed Send ends the connection.
	Send(head []byte, payload buffer.View) error
	// Recv waits for the next frame. The message is valid until the next Recv.
	Recv() (Message, error)
	// Close ends the connection with everything still on its way in either
	// direction: it does not wait for frames that were sent to arrive, but does not
	// hold back those that the network has already taken. Idempotent.
	Close() error
	// Remote is where the other end is, for logs.
	Remote() string
}

// Message is a received frame, in as many pieces as the network delivered.
type Message struct {
	Parts [][]byte
}

// Len is the length of the frame.
func (m Message) Len() int {
	n := 0
	for _, p := range m.Parts {
		n += len(p)
	}
	return n
}

// Prefix returns the first bytes of the frame in one piece: at least
// min(cap(scratch), Len) of them. It copies into scratch only if they are not in
// one piece already.
func (m Message) Prefix(scratch []byte) []byte {
	if len(m.Parts) == 0 {
		return nil
	}
	if len(m.Parts) == 1 || len(m.Parts[0]) >= cap(scratch) {
		return m.Parts[0]
	}
	scratch = scratch[:cap(scratch)]
	return scratch[:m.CopyFrom(0, scratch)]
}

// CopyFrom copies the frame's bytes from offset off on into dst, and returns how many.
func (m Message) CopyFrom(off int, dst []byte) int {
	n := 0
	for _, p := range m.Parts {
		if off >= len(p) {
			off -= len(p)
			continue
		}
		n += copy(dst[n:], p[off:])
		off = 0
		if n == len(dst) {
			break
		}
	}
	return n
}
