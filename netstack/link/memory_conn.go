package link

import (
	"sync"

	"github.com/weirflow/weir/netstack/buffer"
)

const (
	memoryWindow = 2 << 20  // bytes of a pipe that were sent and not yet received
	memoryPiece  = 16 << 10 // a message arrives in pieces of at most that many bytes
)

// memoryConn is one end of a connection.
type memoryConn struct {
	network *Memory
	pipe    Pipe // the direction in which this end sends
	in, out *pipe
	peer    *memoryConn
	parts   [2][]byte
}

var _ Conn = (*memoryConn)(nil)

func (c *memoryConn) Send(head []byte, payload buffer.View) error {
	defer payload.Release()
	n := len(head) + payload.Len()
	if n > MaxFrame {
		c.Close()
		return ErrFrameTooLarge
	}
	frame := make([]byte, 0, n)
	frame = append(append(frame, head...), payload.Bytes()...)
	if err := c.out.reserve(n); err != nil {
		return err
	}
	c.carry(n, func() { c.out.deliver(frame) })
	return nil
}

// carry lets the courier decide when deliver runs.
func (c *memoryConn) carry(size int, deliver func()) {
	if c.network.courier == nil {
		deliver()
		return
	}
	c.network.courier.Carry(c.pipe, size, deliver)
}

func (c *memoryConn) Recv() (Message, error) {
	frame, err := c.in.receive()
	if err != nil {
		return Message{}, err
	}
	if len(frame) <= memoryPiece {
		c.parts[0] = frame
		return Message{Parts: c.parts[:1]}, nil
	}
	c.parts[0], c.parts[1] = frame[:memoryPiece:memoryPiece], frame[memoryPiece:]
	return Message{Parts: c.parts[:2]}, nil
}

// Close stops this end at once; the other learns of it behind what was sent.
func (c *memoryConn) Close() error {
	first := c.in.stopReceiving()
	c.out.stopSending()
	if first {
		c.forget()
		c.carry(0, func() {
			c.out.end()
			c.peer.out.stopSending()
		})
	}
	return nil
}

func (c *memoryConn) Remote() string { return c.pipe.To }

// abort ends both directions at once.
func (c *memoryConn) abort() {
	c.forget()
	for _, p := range []*pipe{c.in, c.out} {
		p.stopReceiving()
		p.stopSending()
	}
}

// forget removes the connection from its network.
func (c *memoryConn) forget() {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	delete(c.network.mu.conns, c)
	delete(c.network.mu.conns, c.peer)
}

// pipe is one direction: frames that were sent and not yet received.
type pipe struct {
	mu struct {
		sync.Mutex
		change    *sync.Cond // of any of the fields
		queue     [][]byte   // delivered
		reserved  int        // bytes sent and not received, delivered or not
		stopped   bool       // the sending end was closed
		abandoned bool       // the receiving end was closed
		ended     bool       // nothing more is delivered
	}
}

func newPipe() *pipe {
	p := &pipe{}
	p.mu.change = sync.NewCond(&p.mu.Mutex)
	return p
}

// reserve waits until the window has room for a frame.
func (p *pipe) reserve(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.mu.stopped && !p.mu.abandoned && p.mu.reserved > 0 && p.mu.reserved+n > memoryWindow {
		p.mu.change.Wait()
	}
	if p.mu.stopped {
		return ErrClosed
	}
	if !p.mu.abandoned {
		p.mu.reserved += n
	}
	return nil
}

func (p *pipe) deliver(frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.abandoned && !p.mu.ended {
		p.mu.queue = append(p.mu.queue, frame)
		p.mu.change.Broadcast()
	}
}

func (p *pipe) receive() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.mu.queue) == 0 && !p.mu.ended && !p.mu.abandoned {
		p.mu.change.Wait()
	}
	if len(p.mu.queue) == 0 || p.mu.abandoned {
		return nil, ErrClosed
	}
	frame := p.mu.queue[0]
	p.mu.queue[0] = nil
	p.mu.queue = p.mu.queue[1:]
	p.mu.reserved -= len(frame)
	p.mu.change.Broadcast()
	return frame, nil
}

// stopReceiving drops what was not received. It returns whether it was the first to.
func (p *pipe) stopReceiving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.mu.abandoned
	p.mu.abandoned = true
	p.mu.queue = nil
	p.mu.change.Broadcast()
	return first
}

func (p *pipe) stopSending() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.stopped = true
	p.mu.change.Broadcast()
}

// end tells the receiver that nothing follows what was delivered.
func (p *pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.ended = true
	p.mu.change.Broadcast()
}
