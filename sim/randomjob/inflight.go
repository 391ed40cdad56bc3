package randomjob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/snapshotmeta"
)

// AddInFlight reads what was in flight in a checkpoint, and adds what it is going to
// be counted as to what was counted by then: together they are [ExpectedAt] the
// checkpoint's positions.
func AddInFlight(ctx context.Context, s *snapshotmeta.Snapshot, files snapshotmeta.Files, p Params, counted Answer) error {
	e := newExpecting(p)
	e.answer = counted
	records, err := codec.For[Record]()
	if err != nil {
		return err
	}
	f := &flight{expecting: e, files: files, records: records}
	for start := 0; start < len(s.Channels); {
		first := s.Channels[start]
		f.in, f.port = e.inputOf(first.Edge)
		if f.in == nil {
			return fmt.Errorf("data in flight from %q to input %d of %q, which is no such edge", first.Edge.From, first.Edge.Input, first.Edge.To)
		}
		f.cutter = wire.Cutter{Keyed: f.in.Kind.Keyed()}
		for ; start < len(s.Channels) && sameChannel(s.Channels[start], first); start++ {
			if err == nil {
				err = f.add(ctx, s.Channels[start].Handle)
			}
		}
		if begun, _, left, _ := f.cutter.Rest(); err == nil && len(begun)+len(left) > 0 {
			err = fmt.Errorf("%d bytes of a record are left", len(begun)+len(left))
		}
		if err != nil {
			return fmt.Errorf("in flight from %s[%d] to %s[%d]: %w", first.Edge.From, first.Producer, first.Edge.To, first.Consumer, err)
		}
	}
	return nil
}

func sameChannel(a, b weir.ChannelStateHandle) bool {
	return a.Edge == b.Edge && a.Consumer == b.Consumer && a.Producer == b.Producer
}

// inputOf finds the node and port that an edge leads to.
func (e *expecting) inputOf(edge weir.EdgeID) (*Node, int) {
	for i := range e.plan.Nodes {
		n := &e.plan.Nodes[i]
		if edge.To != n.Name && edge.To != n.Name+receiveSuffix {
			continue
		}
		input := int(edge.Input)
		for port, inputs := range n.Ports {
			if input < len(inputs) {
				return n, port
			}
			input -= len(inputs)
		}
	}
	return nil, 0
}

// flight follows the records of one channel after another.
type flight struct {
	*expecting
	files   snapshotmeta.Files
	records *codec.Codec[Record]
	in      *Node
	port    int
	cutter  wire.Cutter
}

// add follows what one end of a channel captured.
func (f *flight) add(ctx context.Context, h weir.StateHandle) (err error) {
	r, err := f.files.OpenChannelState(ctx, h)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		base, b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f.cutter.Feed(append([]byte(nil), b...), base)
		if err := f.cut(); err != nil {
			return err
		}
	}
}

func (f *flight) cut() error {
	for {
		var x wire.Element
		ok, err := f.cutter.Next(&x)
		if err != nil || !ok {
			return err
		}
		if !x.Kind.IsRecord() {
			continue
		}
		var r Record
		if err := f.records.Decode(x.Payload, &r); err != nil {
			return err
		}
		if err := f.params.check(r); err != nil {
			return err
		}
		f.process(f.in, f.port, r)
	}
}
