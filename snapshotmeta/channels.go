package snapshotmeta

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/proto/snapshotpb"
)

// CompareChannels is the order of in-flight data in a snapshot: by edge, consumer,
// producer, and what the consumer captured before what the producer did.
func CompareChannels(a, b weir.ChannelStateHandle) int {
	return cmp.Or(
		strings.Compare(a.Edge.To, b.Edge.To), cmp.Compare(a.Edge.Input, b.Edge.Input), strings.Compare(a.Edge.From, b.Edge.From),
		cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Producer, b.Producer), cmp.Compare(a.Side, b.Side),
	)
}

// channelCheck finds what is wrong with in-flight data of a snapshot, handle by
// handle in order.
type channelCheck struct {
	snapshot             *Snapshot
	last                 weir.ChannelStateHandle
	any                  bool
	producers, consumers int // of the last one's edge
}

func (c *channelCheck) next(h weir.ChannelStateHandle) error {
	what := fmt.Sprintf("in-flight data from %q to input %d of %q", h.Edge.From, h.Edge.Input, h.Edge.To)
	if !c.any || h.Edge != c.last.Edge {
		c.producers, c.consumers = c.snapshot.parallelismOf(h.Edge.From), c.snapshot.parallelismOf(h.Edge.To)
	}
	switch {
	case c.producers == 0 || c.consumers == 0:
		return fmt.Errorf("%w: %s: there is no such operator", ErrInvalid, what)
	case h.Edge.Input < 0 || h.Side > weir.ProducerSide:
		return fmt.Errorf("%w: %s: side %d", ErrInvalid, what, h.Side)
	case h.Producer < 0 || int(h.Producer) >= c.producers || h.Consumer < 0 || int(h.Consumer) >= c.consumers:
		return fmt.Errorf("%w: %s: subtask %d of %d to %d of %d", ErrInvalid, what, h.Producer, c.producers, h.Consumer, c.consumers)
	case h.Handle.IsZero():
		return fmt.Errorf("%w: %s: no handle", ErrInvalid, what)
	case c.any && CompareChannels(c.last, h) >= 0:
		return fmt.Errorf("%w: %s: subtask %d to %d is there twice or out of order", ErrInvalid, what, h.Producer, h.Consumer)
	}
	c.last, c.any = h, true
	return nil
}

// parallelismOf is how many subtasks the operator of this name had, 0: there was none.
func (s *Snapshot) parallelismOf(operator string) int {
	for i := range s.Operators {
		if s.Operators[i].Name == operator {
			return s.Operators[i].Parallelism
		}
	}
	return 0
}

// sortedChannels are the snapshot's in the order of a file.
func (s *Snapshot) sortedChannels() []weir.ChannelStateHandle {
	return slices.SortedFunc(slices.Values(s.Channels), CompareChannels)
}

func channelToPB(c *weir.ChannelStateHandle) *snapshotpb.Channel {
	return &snapshotpb.Channel{
		FromOperator: c.Edge.From, ToOperator: c.Edge.To, Input: c.Edge.Input, Side: uint32(c.Side),
		Producer: c.Producer, Consumer: c.Consumer, Handle: handleToPB(c.Handle),
	}
}

func channelFromPB(m *snapshotpb.Channel) (weir.ChannelStateHandle, error) {
	c := weir.ChannelStateHandle{
		Edge:     weir.EdgeID{From: m.FromOperator, To: m.ToOperator, Input: m.Input},
		Producer: m.Producer, Consumer: m.Consumer,
	}
	if m.Side > uint32(weir.ProducerSide) {
		return c, fmt.Errorf("side %d", m.Side)
	}
	c.Side = weir.ChannelSide(m.Side)
	var err error
	c.Handle, err = handleFromPB(m.Handle)
	return c, err
}
