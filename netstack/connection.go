package netstack

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/credit"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// connection is the one stream to another process, after both said Hello. Its reader
// and its writer are goroutines of their own; anybody may post to it and end it.
type connection struct {
	stack   *Stack
	link    link.Conn
	peer    process
	send    bool          // buffers that we send carry a checksum
	verify  bool          // so do those that we get
	wake    chan struct{} // there is something to send; holds at most one token
	ended   chan struct{} // closed by end
	scratch [wire.MaxControl]byte
	head    [wire.MaxControl]byte // of the frame being sent; the writer's

	mu struct {
		sync.Mutex
		err     error                    // why it ended
		inputs  map[uint32]*remoteInput  // channels that we consume, by our number
		outputs map[uint32]*remoteOutput // channels that we produce, by the peer's number
		last    uint32                   // the last number we gave
		control []control                // to send before anything else, in order
		spare   []control                // the array that control is swapped with
		ready   []*remoteOutput          // outputs that may have something to send, each once
		taken   int                      // outputs of ready that were taken out
	}
}

// control is a control frame to send; what is in it is found out when it is sent.
type control struct {
	kind  controlKind
	in    *remoteInput
	frame wire.Frame // for sendFrame
	size  int        // for sendSize
}

type controlKind uint8

const (
	sendFrame controlKind = iota
	sendOpen
	sendCredit
	sendResume
	sendSize
	sendClose
)

// remoteInput is a channel of a gate whose producer is at the other end.
type remoteInput struct {
	gate     *gate.InputGate
	index    int
	edge     int
	spec     *ChannelSpec
	consumer weir.AttemptID
	conn     *connection // set before the channel is opened, and not changed
	number   uint32
}

var _ gate.Upstream = (*remoteInput)(nil)

// CreditDue implements [gate.Upstream].
func (in *remoteInput) CreditDue() { in.conn.post(control{kind: sendCredit, in: in}) }

// Resume implements [gate.Upstream].
func (in *remoteInput) Resume() { in.conn.post(control{kind: sendResume, in: in}) }

// BufferSize implements [gate.Upstream].
func (in *remoteInput) BufferSize(size int) {
	in.conn.post(control{kind: sendSize, in: in, size: size})
}

// Close implements [gate.Upstream].
func (in *remoteInput) Close() { in.conn.post(control{kind: sendClose, in: in}) }

// lost fails the channel.
func (in *remoteInput) lost(err error) { in.gate.Fail(in.index, err) }

// remoteOutput is a subpartition that a consumer at the other end reads. Guarded by
// connection.mu.
type remoteOutput struct {
	number  uint32
	ledger  credit.Ledger
	sub     *partition.Subpartition // nil while the request is parked
	request *request
	queued  bool // in connection.mu.ready
	size    int  // of segments, asked for before the subpartition was there; 0: none
	without bool // the consumer has no exclusive buffers
}

func newConnection(s *Stack, l link.Conn, h wire.Hello) *connection {
	c := &connection{
		stack:  s,
		link:   l,
		peer:   process{h.TaskManager, h.Incarnation},
		send:   s.options.Checksums,
		verify: h.Checksums,
		wake:   make(chan struct{}, 1),
		ended:  make(chan struct{}),
	}
	c.mu.inputs = make(map[uint32]*remoteInput)
	c.mu.outputs = make(map[uint32]*remoteOutput)
	return c
}

// run starts the writer and is the reader, until the connection ends.
func (c *connection) run(ctx context.Context) {
	writerEnded := func(err error) {
		if err == nil {
			err = ErrConnectionLost
		}
		c.end(err)
	}
	if err := c.stack.group.GoThen("link/writer", c.write, writerEnded); err != nil {
		c.end(err)
		return
	}
	var err error = errors.New("reader ended by a fault")
	defer func() { c.end(err) }()
	err = c.read()
}

// end ends the connection and fails its channels. Idempotent; the first cause stands.
func (c *connection) end(cause error) {
	c.mu.Lock()
	if c.mu.err != nil {
		c.mu.Unlock()
		return
	}
	c.mu.err = cause
	inputs, outputs := c.mu.inputs, c.mu.outputs
	c.mu.inputs, c.mu.outputs, c.mu.control, c.mu.ready = nil, nil, nil, nil
	c.mu.taken = 0
	c.mu.Unlock()

	close(c.ended)
	c.link.Close()
	c.stack.disconnected(c)
	for _, in := range inputs {
		in.lost(fmt.Errorf("%w: %w", ErrConnectionLost, cause))
	}
	for _, o := range outputs {
		c.drop(o)
	}
}

// drop gives a subpartition up whose consumer is gone.
func (c *connection) drop(o *remoteOutput) {
	c.stack.withdraw(o.request)
	c.mu.Lock()
	sub := o.sub
	c.mu.Unlock()
	if sub != nil {
		sub.Release()
	}
}

// openInput opens a channel over the connection.
func (c *connection) openInput(in *remoteInput) {
	c.mu.Lock()
	if err := c.mu.err; err != nil {
		c.mu.Unlock()
		in.lost(err)
		return
	}
	c.mu.last++
	in.conn, in.number = c, c.mu.last
	c.mu.inputs[in.number] = in
	c.mu.control = append(c.mu.control, control{kind: sendOpen, in: in})
	c.mu.Unlock()
	c.signal()
}

// post queues a control frame. On a connection that has ended it does nothing.
func (c *connection) post(x control) {
	c.mu.Lock()
	if c.mu.err == nil {
		c.mu.control = append(c.mu.control, x)
	}
	c.mu.Unlock()
	c.signal()
}

// offer queues an output that may have something to send.
func (c *connection) offer(o *remoteOutput, urgent bool) {
	c.mu.Lock()
	c.offerLocked(o, urgent)
	c.mu.Unlock()
	c.signal()
}

func (c *connection) offerLocked(o *remoteOutput, urgent bool) {
	if c.mu.err != nil || o.sub == nil {
		return
	}
	if o.queued && urgent {
		c.removeReadyLocked(o)
	}
	switch {
	case o.queued:
	case urgent && c.mu.taken > 0:
		c.mu.taken--
		c.mu.ready[c.mu.taken] = o
	case urgent:
		c.mu.ready = append([]*remoteOutput{o}, c.mu.ready...)
	default:
		c.mu.ready = append(c.mu.ready, o)
	}
	o.queued = true
}

func (c *connection) removeReadyLocked(o *remoteOutput) {
	kept := c.mu.ready[:c.mu.taken]
	for _, x := range c.mu.ready[c.mu.taken:] {
		if x != o {
			kept = append(kept, x)
		}
	}
	c.mu.ready = kept
	o.queued = false
}

// nextReadyLocked takes the next output, nil if there is none.
func (c *connection) nextReadyLocked() *remoteOutput {
	if c.mu.taken == len(c.mu.ready) {
		return nil
	}
	o := c.mu.ready[c.mu.taken]
	c.mu.ready[c.mu.taken] = nil
	o.queued = false
	if c.mu.taken++; c.mu.taken == len(c.mu.ready) {
		c.mu.ready, c.mu.taken = c.mu.ready[:0], 0
	} else if c.mu.taken >= 64 && 2*c.mu.taken >= len(c.mu.ready) {
		n := copy(c.mu.ready, c.mu.ready[c.mu.taken:])
		c.mu.ready, c.mu.taken = c.mu.ready[:n], 0
	}
	return o
}

func (c *connection) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// failOutput tells the consumer that it gets no more of a channel.
func (c *connection) failOutput(o *remoteOutput, code wire.FailureCode, err error) {
	f := wire.Failure{Channel: o.number, Code: code, Message: err.Error()}
	c.mu.Lock()
	known := c.mu.outputs[o.number] == o
	if known {
		delete(c.mu.outputs, o.number)
	}
	if o.request != nil && code == wire.CodeProducerFailed {
		f.Cause = o.request.key.producer
	}
	c.mu.Unlock()
	if known {
		c.post(control{kind: sendFrame, frame: f})
	}
}

// errorOf is the sentinel that a failure's code stands for.
func errorOf(code wire.FailureCode) error {
	switch code {
	case wire.CodePartitionNotFound:
		return ErrPartitionNotFound
	case wire.CodeFenced:
		return ErrFenced
	case wire.CodeProtocol:
		return ErrProtocol
	case wire.CodeVersion:
		return wire.ErrVersion
	case wire.CodeReplaced:
		return ErrReplaced
	case wire.CodeProducerFailed:
		return ErrProducerFailed
	}
	return ErrRefused
}

// wrapped makes a view of bytes that belong to no pool.
func wrapped(b []byte) buffer.View { return buffer.Wrap(b).Own() }
