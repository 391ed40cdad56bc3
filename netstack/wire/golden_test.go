package wire_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/proto/datapb"
)

var (
	producer = weir.AttemptID{Job: weir.JobID{1, 2, 3, 15: 9}, Vertex: 3, Subtask: 200, Epoch: 77, N: 2}
	consumer = weir.AttemptID{Job: weir.JobID{1, 2, 3, 15: 9}, Vertex: 0, Subtask: 0, Epoch: 0, N: 1}
)

func attemptPB(a weir.AttemptID) *datapb.Attempt {
	return &datapb.Attempt{Job: a.Job[:], Vertex: uint32(a.Vertex), Subtask: uint32(a.Subtask), Epoch: uint64(a.Epoch), N: uint32(a.N)}
}

// controls are control frames and what protobuf makes of them.
func controls() map[string]struct {
	frame wire.Frame
	pb    *datapb.Frame
} {
	type pair = struct {
		frame wire.Frame
		pb    *datapb.Frame
	}
	hello := wire.Hello{Cluster: "c1", TaskManager: weir.TaskManagerID{1, 15: 2}, Incarnation: math.MaxUint64, Peer: weir.TaskManagerID{3}, PeerIncarnation: 5, Checksums: true}
	return map[string]pair{
		"hello": {hello, &datapb.Frame{Frame: &datapb.Frame_Hello{Hello: &datapb.Hello{
			Magic: []byte("weir"), Version: 1, Cluster: []byte("c1"), TaskManager: hello.TaskManager[:], Incarnation: math.MaxUint64,
			PeerTaskManager: hello.Peer[:], PeerIncarnation: 5, Checksums: true}}}},
		"open": {wire.OpenChannel{Channel: 300, Output: 4, Subpartition: 1, Producer: producer, Consumer: consumer, Epoch: 78, Credit: 2},
			&datapb.Frame{Frame: &datapb.Frame_OpenChannel{OpenChannel: &datapb.OpenChannel{Channel: 300, Output: 4, Subpartition: 1,
				Producer: attemptPB(producer), Consumer: attemptPB(consumer), Epoch: 78, Credit: 2}}}},
		"credit":      {wire.AddCredit{Channel: 1, Credit: 130}, &datapb.Frame{Frame: &datapb.Frame_AddCredit{AddCredit: &datapb.AddCredit{Channel: 1, Credit: 130}}}},
		"backlog":     {wire.Backlog{Channel: 300, Backlog: wire.MaxCredit}, &datapb.Frame{Frame: &datapb.Frame_Backlog{Backlog: &datapb.Backlog{Channel: 300, Backlog: wire.MaxCredit}}}},
		"no backlog":  {wire.Backlog{Channel: 1}, &datapb.Frame{Frame: &datapb.Frame_Backlog{Backlog: &datapb.Backlog{Channel: 1}}}},
		"buffer size": {wire.BufferSize{Channel: 7, Size: wire.MaxPayload}, &datapb.Frame{Frame: &datapb.Frame_BufferSize{BufferSize: &datapb.BufferSize{Channel: 7, Size: wire.MaxPayload}}}},
		"buffer of 1": {wire.BufferSize{Channel: 7, Size: 1}, &datapb.Frame{Frame: &datapb.Frame_BufferSize{BufferSize: &datapb.BufferSize{Channel: 7, Size: 1}}}},
		"open without": {wire.OpenChannel{Channel: 1, Producer: producer, WithoutExclusive: true},
			&datapb.Frame{Frame: &datapb.Frame_OpenChannel{OpenChannel: &datapb.OpenChannel{Channel: 1, Producer: attemptPB(producer), Consumer: &datapb.Attempt{Job: make([]byte, 16)}, WithoutExclusive: true}}}},
		"resume": {wire.Resume{Channel: math.MaxUint32}, &datapb.Frame{Frame: &datapb.Frame_Resume{Resume: &datapb.Resume{Channel: math.MaxUint32}}}},
		"close":  {wire.CloseChannel{Channel: 7}, &datapb.Frame{Frame: &datapb.Frame_CloseChannel{CloseChannel: &datapb.CloseChannel{Channel: 7}}}},
		"failure": {wire.Failure{Channel: 7, Code: wire.CodeFenced, Message: strings.Repeat("é", 1000), Cause: producer},
			&datapb.Frame{Frame: &datapb.Frame_Failure{Failure: &datapb.Failure{Channel: 7, Code: datapb.Failure_FENCED,
				Message: []byte(strings.Repeat("é", 1000)), Cause: attemptPB(producer)}}}},
		"failure of the connection": {wire.Failure{}, &datapb.Frame{Frame: &datapb.Frame_Failure{Failure: &datapb.Failure{}}}},
	}
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestControlFramesAreBytesOfProtobuf(t *testing.T) {
	t.Parallel()
	for name, c := range controls() {
		got, want := c.frame.Append(nil), marshal(t, c.pb)
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, got, want)
		}
		back, err := wire.DecodeControl(want)
		if err != nil || !reflect.DeepEqual(back, c.frame) {
			t.Errorf("%s: decoded %+v, %v", name, back, err)
		}
		for cut := range want { // nothing but the whole frame is one
			if f, err := wire.DecodeControl(want[:cut]); err == nil {
				t.Errorf("%s cut at %d: %+v", name, cut, f)
			}
		}
		if f, err := wire.DecodeControl(append(want, 0)); err == nil {
			t.Errorf("%s with a byte more: %+v", name, f)
		}
	}
}

func TestBufferFramesAreBytesOfProtobuf(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte{7}, wire.MaxPayload)
	for _, c := range []struct {
		h       wire.Buffer
		payload []byte
	}{
		{wire.Buffer{}, nil},
		{wire.Buffer{Channel: 1, Type: wire.TypeData, Next: wire.TypeEvent, Backlog: 3, Base: -5}, []byte("abc")},
		{wire.Buffer{Channel: 9, Sequence: 128, Type: wire.TypeBlockingEvent}, []byte("e")},
		{wire.Buffer{Channel: math.MaxUint32, Sequence: math.MaxUint32, Type: wire.TypeRecoveredEnd, Next: wire.TypeRecoveredEnd,
			Backlog: wire.MaxCredit, Base: math.MinInt64, Checksum: math.MaxUint32}, big},
	} {
		c.h.Payload = len(c.payload)
		got := c.h.AppendHead(nil)
		if len(got) > wire.MaxBufferHead {
			t.Errorf("head of %d bytes", len(got))
		}
		if !wire.IsBuffer(got) {
			t.Errorf("%x is no buffer frame", got)
		}
		head := got
		got = append(got, c.payload...)
		want := marshal(t, &datapb.Frame{Frame: &datapb.Frame_Buffer{Buffer: &datapb.Buffer{
			Channel: c.h.Channel, Sequence: c.h.Sequence, Type: datapb.DataType(c.h.Type), Next: datapb.DataType(c.h.Next),
			Backlog: c.h.Backlog, BaseTimestamp: c.h.Base, Crc: c.h.Checksum, Payload: c.payload}}})
		if !bytes.Equal(got, want) {
			t.Errorf("got  %.80x\nwant %.80x", got, want)
		}
		for _, prefix := range [][]byte{want, want[:min(len(want), wire.MaxBufferHead)], head} {
			if back, err := wire.DecodeBuffer(prefix, len(want)); err != nil || back != c.h {
				t.Errorf("decoded %+v, %v, want %+v", back, err, c.h)
			}
		}
		for cut := range head {
			if back, err := wire.DecodeBuffer(head[:cut], len(want)); err == nil {
				t.Errorf("cut at %d: %+v", cut, back)
			}
		}
	}
}

func TestOversizeLengthsAreRefused(t *testing.T) {
	t.Parallel()
	h := wire.Buffer{Channel: 1, Type: wire.TypeData, Payload: wire.MaxPayload + 1}
	head := h.AppendHead(nil)
	if back, err := wire.DecodeBuffer(head, len(head)+h.Payload); err == nil {
		t.Errorf("payload too large: %+v", back)
	}
	for name, b := range map[string][]byte{
		"cluster":  wire.Hello{Cluster: strings.Repeat("x", wire.MaxCluster+1)}.Append(nil),
		"credit":   wire.AddCredit{Channel: 1, Credit: wire.MaxCredit + 1}.Append(nil),
		"backlog":  wire.Backlog{Channel: 1, Backlog: wire.MaxCredit + 1}.Append(nil),
		"size":     wire.BufferSize{Channel: 1, Size: wire.MaxPayload + 1}.Append(nil),
		"no size":  wire.BufferSize{Channel: 1}.Append(nil),
		"frame":    make([]byte, wire.MaxControl+1),
		"location": wire.AppendEvent(nil, wire.Barrier{ID: 1, Options: weir.CheckpointOptions{Location: strings.Repeat("x", 1025)}}),
	} {
		if f, err := wire.DecodeControl(b); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
		if e, err := wire.DecodeEvent(b); err == nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	long := wire.Failure{Channel: 1, Message: strings.Repeat("x", 2*wire.MaxMessage)}.Append(nil)
	if f, err := wire.DecodeControl(long); err != nil || len(f.(wire.Failure).Message) != wire.MaxMessage {
		t.Errorf("a failure's message is not cut: %v", err)
	}
}

func TestHelloOfAnotherVersionSaysSo(t *testing.T) {
	t.Parallel()
	later := marshal(t, &datapb.Frame{Frame: &datapb.Frame_Hello{Hello: &datapb.Hello{Magic: []byte("weir"), Version: 2, Cluster: bytes.Repeat([]byte{1}, 1000)}}})
	other := marshal(t, &datapb.Frame{Frame: &datapb.Frame_Hello{Hello: &datapb.Hello{Magic: []byte("wier"), Version: 1}}})
	for _, b := range [][]byte{later, other} {
		if _, err := wire.DecodeControl(b); err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("got %v", err)
		}
	}
}

var events = map[string]struct {
	event wire.Event
	pb    *datapb.Event
}{
	"barrier": {wire.Barrier{ID: 300, Age: 1500 * time.Microsecond, Options: weir.CheckpointOptions{
		Kind: weir.TerminateSavepoint, Alignment: weir.ForcedAligned, Timeout: time.Minute, Location: "chk-300"}},
		&datapb.Event{Event: &datapb.Event_Barrier{Barrier: &datapb.Barrier{Id: 300, Age: 1_500_000, Kind: 5, Alignment: 3, Timeout: 60_000_000_000, Location: []byte("chk-300")}}}},
	"cancel":               {wire.CancelBarrier{ID: 4}, &datapb.Event{Event: &datapb.Event_CancelBarrier{CancelBarrier: &datapb.CancelBarrier{Id: 4}}}},
	"end of data":          {wire.EndOfData{}, &datapb.Event{Event: &datapb.Event_EndOfData{EndOfData: &datapb.EndOfData{}}}},
	"end of data, drained": {wire.EndOfData{Drain: true}, &datapb.Event{Event: &datapb.Event_EndOfData{EndOfData: &datapb.EndOfData{Drain: true}}}},
	"end of partition":     {wire.EndOfPartition{}, &datapb.Event{Event: &datapb.Event_EndOfPartition{EndOfPartition: &datapb.EndOfPartition{}}}},
	"end of channel state": {wire.EndOfChannelState{}, &datapb.Event{Event: &datapb.Event_EndOfChannelState{EndOfChannelState: &datapb.EndOfChannelState{}}}},
}

func TestEventsAreBytesOfProtobuf(t *testing.T) {
	t.Parallel()
	for name, c := range events {
		got, want := wire.AppendEvent(nil, c.event), marshal(t, c.pb)
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, got, want)
		}
		if back, err := wire.DecodeEvent(want); err != nil || back != c.event {
			t.Errorf("%s: decoded %+v, %v", name, back, err)
		}
		if _, last := c.event.(wire.EndOfPartition); wire.IsEndOfPartition(want) != last {
			t.Errorf("%s: is end of partition: %t", name, !last)
		}
		for cut := range want {
			if e, err := wire.DecodeEvent(want[:cut]); err == nil {
				t.Errorf("%s cut at %d: %v", name, cut, e)
			}
		}
	}
}

func TestAgeIsAddedToBarriersOnly(t *testing.T) {
	t.Parallel()
	for name, c := range events {
		b := wire.AppendEvent(nil, c.event)
		got, err := wire.DecodeEvent(wire.AddAge(b, time.Second))
		want := c.event
		if x, ok := want.(wire.Barrier); ok {
			x.Age += time.Second
			want = x
		}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	if got := wire.AddAge([]byte{10, 99}, time.Second); !bytes.Equal(got, []byte{10, 99}) {
		t.Errorf("what is no event was changed to %x", got)
	}
}
