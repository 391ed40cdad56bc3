package input_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/taskmanager/barrier"
	"github.com/weirflow/weir/taskmanager/input"
)

// FuzzPoll gives a channel anything at all: it is taken for records and events, or
// refused with the channel's name.
func FuzzPoll(f *testing.F) {
	good := append(record(false, 0, 7, []byte("abc")), record(false, 0, wire.NoTimestamp, make([]byte, 300))...)
	f.Add(good, wire.AppendEvent(nil, wire.Barrier{ID: 3}), uint8(1), uint16(5), false)
	f.Add(good, wire.AppendEvent(nil, wire.EndOfPartition{}), uint8(1), uint16(100), true)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, []byte{1, 2, 3}, uint8(3), uint16(1), true)
	f.Add(good, wire.AppendEvent(nil, wire.Barrier{ID: 3}), uint8(wire.TypeEvent), uint16(100), false)
	f.Add(good[:9], wire.AppendEvent(nil, wire.Barrier{ID: 3, Options: weir.CheckpointOptions{Alignment: weir.Unaligned}}), uint8(wire.TypePriorityEvent), uint16(100), true)
	f.Add(good, wire.AppendEvent(nil, wire.Barrier{ID: 3, Options: weir.CheckpointOptions{Alignment: weir.Unaligned}}), uint8(wire.TypeBlockingEvent), uint16(101), true)
	f.Fuzz(func(t *testing.T, data, event []byte, typ uint8, cut uint16, borrow bool) {
		g := newGate(t, 1)
		for n := max(1, int(cut)); len(data) > 0; {
			n = min(n, len(data), wire.MaxPayload)
			g.data(0, data[:n])
			data = data[n:]
		}
		segments := len(g.queues[0])
		if e := wire.DataType(typ); e.IsEvent() && e <= wire.TypeRecoveredEnd {
			g.queues[0] = append(g.queues[0], gate.Item{Type: e, Event: event})
		}
		s := &fakeSink{process: func(b *operator.Batch) error { b.Next = b.N; return nil }}
		in := input.New(input.Options{Gates: []input.Gate{g}, Keyed: []bool{cut%2 == 0}, Borrow: borrow, Sink: s, Now: time.Now, Mode: barrier.Mode(cut % 3)})
		for {
			worked, err := in.Poll(t.Context())
			if c := (*input.ChannelError)(nil); err != nil && !errors.As(err, &c) {
				t.Fatalf("an error without a channel: %v", err)
			}
			if err != nil {
				in.Close()
				return
			}
			if !worked {
				break
			}
		}
		if g.released != segments {
			t.Errorf("%d of %d segments given back", g.released, segments)
		}
	})
}
