package netstack

import (
	"context"
	"hash/crc32"

	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// write sends control frames first, then one message of each ready output in turn,
// until the connection ends.
func (c *connection) write(ctx context.Context) error {
	for {
		c.mu.Lock()
		frames := c.mu.control
		c.mu.control, c.mu.spare = c.mu.spare[:0], nil
		o := c.nextReadyLocked()
		c.mu.Unlock()

		err := c.sendControls(frames)
		if err == nil && o != nil {
			err = c.sendFrom(o)
		}
		if err != nil {
			return err
		}
		clear(frames)
		c.mu.Lock()
		c.mu.spare = frames[:0]
		c.mu.Unlock()
		if len(frames) > 0 || o != nil {
			continue
		}
		select {
		case <-c.wake:
		case <-c.ended:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *connection) sendControls(frames []control) error {
	for i := range frames {
		if b := c.frameOf(&frames[i]); len(b) > 0 {
			if err := c.link.Send(b, buffer.View{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// frameOf makes a control frame; nothing if it is not needed any more.
func (c *connection) frameOf(x *control) []byte {
	b := c.head[:0]
	switch x.kind {
	case sendFrame:
		return x.frame.Append(b)
	case sendOpen:
		return c.openFrame(b, x.in)
	case sendCredit:
		if n := x.in.gate.Remote(x.in.index).Announce(); n > 0 {
			return wire.AddCredit{Channel: x.in.number, Credit: uint32(n)}.Append(b)
		}
	case sendResume:
		return wire.Resume{Channel: x.in.number}.Append(b)
	case sendSize:
		return wire.BufferSize{Channel: x.in.number, Size: uint32(x.size)}.Append(b)
	case sendClose:
		if c.forgetInput(x.in) {
			return wire.CloseChannel{Channel: x.in.number}.Append(b)
		}
	}
	return nil
}

// openFrame asks for a channel, unless it was closed before.
func (c *connection) openFrame(b []byte, in *remoteInput) []byte {
	initial, ok := in.gate.Remote(in.index).Open(in)
	if !ok {
		c.forgetInput(in)
		return nil
	}
	return wire.OpenChannel{
		Channel:      in.number,
		Output:       uint32(in.edge),
		Subpartition: uint32(in.spec.Subpartition),
		Producer:     in.spec.Producer,
		Consumer:     in.consumer,
		Epoch:        in.consumer.Epoch,
		Credit:       uint32(initial),

		WithoutExclusive: in.gate.Remote(in.index).WithoutExclusive(),
	}.Append(b)
}

// forgetInput removes a channel; false if it was removed before.
func (c *connection) forgetInput(in *remoteInput) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.mu.inputs[in.number]
	delete(c.mu.inputs, in.number)
	return known
}

// sendFrom sends one message of an output, if it has one that its credit covers.
func (c *connection) sendFrom(o *remoteOutput) error {
	c.mu.Lock()
	credit, sub := o.ledger.MaySend(false), o.sub
	c.mu.Unlock()
	p, outcome := sub.Poll(credit)
	switch outcome {
	case partition.NeedsCredit:
		return c.sendBacklog(o, sub) // it is offered again when there is credit
	case partition.Nothing:
		return nil // it is offered again when there is something
	case partition.Ended:
		c.failOutput(o, wire.CodeProducerFailed, sub.Err())
		return nil
	}
	c.mu.Lock()
	h := wire.Buffer{
		Channel:  o.number,
		Sequence: o.ledger.Spend(p.Type.IsEvent()),
		Type:     p.Type,
		Next:     p.Next,
		Backlog:  uint32(p.Backlog),
	}
	if p.Next != wire.TypeNone && o.ledger.MaySend(p.Next.IsEvent()) {
		c.offerLocked(o, p.Next == wire.TypePriorityEvent)
	}
	c.mu.Unlock()

	payload := p.Data
	if p.Type.IsEvent() {
		payload = wrapped(wire.AddAge(p.Event, p.Spent))
	} else {
		h.Base = payload.Base()
	}
	h.Payload = payload.Len()
	if c.send {
		h.Checksum = crc32.Checksum(payload.Bytes(), castagnoli)
	}
	return c.link.Send(h.AppendHead(c.head[:0]), payload)
}

// sendBacklog tells a consumer that has no buffer of this channel that it is to find
// some.
func (c *connection) sendBacklog(o *remoteOutput, sub *partition.Subpartition) error {
	if !o.without {
		return nil
	}
	n := min(sub.Backlog(), wire.MaxCredit)
	return c.link.Send(wire.Backlog{Channel: o.number, Backlog: uint32(n)}.Append(c.head[:0]), buffer.View{})
}
