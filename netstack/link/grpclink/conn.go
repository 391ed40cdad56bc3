package grpclink

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/link"
)

// stream is what both ends of a gRPC stream have in common.
type stream interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// conn is one end of a connection.
type conn struct {
	stream stream
	remote string
	out    outgoing // of the sending goroutine
	in     incoming // of the receiving goroutine
	closed chan struct{}
	close  func() // ends the stream; run once
	once   sync.Once
}

var _ link.Conn = (*conn)(nil)

func newConn(s stream, remote string, closing func()) *conn {
	return &conn{stream: s, remote: remote, closed: make(chan struct{}), close: closing}
}

// Remote is the other end's address.
func (c *conn) Remote() string { return c.remote }

// Close ends the connection.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.close()
	})
	return nil
}

// Send sends one frame and takes over the payload's reference.
func (c *conn) Send(head []byte, payload buffer.View) error {
	if tooLarge(len(head), payload.Len()) {
		n := len(head) + payload.Len()
		payload.Release()
		_ = c.Close()
		return fmt.Errorf("send %d bytes to %s: %w", n, c.remote, link.ErrFrameTooLarge)
	}
	c.out = outgoing{head: head, payload: payload}
	err := c.stream.SendMsg(&c.out)
	taken := c.out.taken
	c.out = outgoing{}
	if !taken {
		payload.Release()
	}
	if err != nil {
		return c.ended("send to", err)
	}
	return nil
}

// Recv receives the next frame.
func (c *conn) Recv() (link.Message, error) {
	c.in.release()
	if err := c.stream.RecvMsg(&c.in); err != nil {
		return link.Message{}, c.ended("receive from", err)
	}
	return link.Message{Parts: c.in.parts}, nil
}

// ended closes the connection and says in link's words why.
func (c *conn) ended(doing string, err error) error {
	select {
	case <-c.closed:
		return fmt.Errorf("%s %s: %w", doing, c.remote, link.ErrClosed)
	default:
	}
	_ = c.Close()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s %s: %w", doing, c.remote, link.ErrClosed)
	}
	if status.Code(err) == codes.ResourceExhausted {
		return fmt.Errorf("%s %s: %w: %s", doing, c.remote, link.ErrFrameTooLarge, status.Convert(err).Message())
	}
	return fmt.Errorf("%s %s: %w: %s", doing, c.remote, link.ErrClosed, status.Convert(err).Message())
}
