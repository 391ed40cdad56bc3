package netstack

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/weirflow/weir/netstack/credit"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// read brings frames to their channels until the connection ends. It waits for the
// socket only: data has a buffer, since its credit was one.
func (c *connection) read() error {
	for {
		m, err := c.link.Recv()
		if err != nil {
			return err
		}
		if prefix := m.Prefix(c.scratch[:0:wire.MaxBufferHead]); wire.IsBuffer(prefix) {
			err = c.onBuffer(prefix, m)
		} else {
			err = c.onControl(m)
		}
		if err != nil {
			return err
		}
	}
}

// onBuffer brings a segment or an event to its channel. An error ends the connection;
// what is wrong with a channel ends the channel.
func (c *connection) onBuffer(prefix []byte, m link.Message) error {
	h, err := wire.DecodeBuffer(prefix, m.Len())
	if err != nil {
		return err
	}
	c.mu.Lock()
	in, last := c.mu.inputs[h.Channel], c.mu.last
	c.mu.Unlock()
	if in == nil {
		if h.Channel == 0 || h.Channel > last {
			return fmt.Errorf("data for channel %d, which was never opened: %w", h.Channel, ErrProtocol)
		}
		return nil // closed in the meantime
	}
	if err := c.receive(in, h, m); err != nil {
		in.lost(err)
		c.post(control{kind: sendClose, in: in})
	}
	return nil
}

// receive copies the payload, once, and queues it.
func (c *connection) receive(in *remoteInput, h wire.Buffer, m link.Message) error {
	channel := in.gate.Remote(in.index)
	if h.Type.IsEvent() {
		event := make([]byte, min(h.Payload, wire.MaxEvent))
		m.CopyFrom(m.Len()-h.Payload, event)
		if err := c.check(h, event); err != nil {
			return err
		}
		return channel.DeliverEvent(h, event)
	}
	b, err := channel.Take(h)
	if b == nil {
		return err
	}
	payload := b.Data()[:h.Payload]
	m.CopyFrom(m.Len()-h.Payload, payload)
	if err := c.check(h, payload); err != nil {
		b.Release()
		return err
	}
	channel.Deliver(h, b)
	return nil
}

func (c *connection) check(h wire.Buffer, payload []byte) error {
	if !c.verify {
		return nil
	}
	if sum := crc32.Checksum(payload, castagnoli); sum != h.Checksum {
		return fmt.Errorf("checksum of message %d is %08x, not %08x: %w", h.Sequence, sum, h.Checksum, ErrProtocol)
	}
	return nil
}

func (c *connection) onControl(m link.Message) error {
	f, err := wire.DecodeControl(gather(m, c.scratch[:0]))
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case wire.OpenChannel:
		return c.onOpen(f)
	case wire.AddCredit:
		return c.onCredit(f)
	case wire.Resume:
		return c.onResume(f)
	case wire.CloseChannel:
		c.onClose(f)
		return nil
	case wire.Backlog:
		c.onBacklog(f)
		return nil
	case wire.BufferSize:
		c.onBufferSize(f)
		return nil
	case wire.Failure:
		return c.onFailure(f)
	default:
		return fmt.Errorf("unexpected %T: %w", f, ErrProtocol)
	}
}

// onOpen looks for the subpartition that the peer wants to read.
func (c *connection) onOpen(f wire.OpenChannel) error {
	o := &remoteOutput{number: f.Channel, ledger: credit.NewLedger(int(f.Credit)), without: f.WithoutExclusive}
	o.request = &request{
		key:          partitionKey{f.Producer, int(f.Output)},
		subpartition: int(f.Subpartition),
		consumer:     f.Consumer,
		epoch:        f.Epoch,
		grant:        func(s *partition.Subpartition) { c.granted(o, s) },
		refuse:       func(code wire.FailureCode, err error) { c.failOutput(o, code, err) },
	}
	c.mu.Lock()
	switch {
	case c.mu.err != nil:
		c.mu.Unlock()
		return c.mu.err
	case c.mu.outputs[f.Channel] != nil:
		c.mu.Unlock()
		return fmt.Errorf("channel %d opened twice: %w", f.Channel, ErrProtocol)
	}
	c.mu.outputs[f.Channel] = o
	c.mu.Unlock()
	c.stack.ask(o.request)
	return nil
}

// granted connects a channel with its subpartition, unless it was closed meanwhile.
func (c *connection) granted(o *remoteOutput, s *partition.Subpartition) {
	c.mu.Lock()
	gone := c.mu.err != nil || c.mu.outputs[o.number] != o
	if !gone {
		o.sub = s // before Attach, which may notify at once
	}
	size := o.size
	c.mu.Unlock()
	if gone {
		s.Release()
		return
	}
	if size > 0 {
		s.SetBufferSize(size)
	}
	switch next, err := s.Attach(func(urgent bool) { c.offer(o, urgent) }); {
	case errors.Is(err, partition.ErrAttached):
		c.failOutput(o, wire.CodeProtocol, err)
	case err != nil:
		c.failOutput(o, wire.CodeProducerFailed, err)
	case next != wire.TypeNone:
		c.offer(o, next == wire.TypePriorityEvent)
	}
}

func (c *connection) onCredit(f wire.AddCredit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.mu.outputs[f.Channel]
	if o == nil {
		return nil // closed in the meantime
	}
	if err := o.ledger.Add(int(f.Credit)); err != nil {
		return err
	}
	c.offerLocked(o, false)
	c.signal()
	return nil
}

func (c *connection) onResume(f wire.Resume) error {
	c.mu.Lock()
	o := c.mu.outputs[f.Channel]
	var sub *partition.Subpartition
	if o != nil {
		sub = o.sub
		if o.without {
			o.ledger.Reset() // the consumer has given up what it had granted
		}
	}
	c.mu.Unlock()
	if o == nil {
		return nil
	}
	if sub == nil {
		return fmt.Errorf("resume of channel %d before its data: %w", f.Channel, ErrProtocol)
	}
	next, err := sub.Resume()
	switch {
	case err != nil:
		c.failOutput(o, wire.CodeProtocol, err)
		c.drop(o)
	case next != wire.TypeNone:
		c.offer(o, next == wire.TypePriorityEvent)
	}
	return nil
}

// onBacklog lets a channel look for buffers.
func (c *connection) onBacklog(f wire.Backlog) {
	c.mu.Lock()
	in := c.mu.inputs[f.Channel]
	c.mu.Unlock()
	if in != nil {
		in.gate.Remote(in.index).Backlog(int(f.Backlog))
	}
}

// onBufferSize bounds the segments that a task begins for this consumer.
func (c *connection) onBufferSize(f wire.BufferSize) {
	c.mu.Lock()
	var sub *partition.Subpartition
	if o := c.mu.outputs[f.Channel]; o != nil {
		o.size = int(f.Size)
		sub = o.sub
	}
	c.mu.Unlock()
	if sub != nil {
		sub.SetBufferSize(int(f.Size))
	}
}

func (c *connection) onClose(f wire.CloseChannel) {
	c.mu.Lock()
	o := c.mu.outputs[f.Channel]
	delete(c.mu.outputs, f.Channel)
	c.mu.Unlock()
	if o != nil {
		c.drop(o)
	}
}

func (c *connection) onFailure(f wire.Failure) error {
	err := fmt.Errorf("%s: %w", f.Message, errorOf(f.Code))
	if f.Channel == 0 {
		return err
	}
	c.mu.Lock()
	in := c.mu.inputs[f.Channel]
	c.mu.Unlock()
	if in != nil {
		in.lost(err)
	}
	return nil
}
