package wire_test

import (
	"reflect"
	"testing"

	"github.com/weirflow/weir/netstack/wire"
)

// What decodes encodes to something that decodes to the same.

func FuzzDecodeControl(f *testing.F) {
	for _, c := range controls() {
		f.Add(c.frame.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := wire.DecodeControl(b)
		if err != nil {
			return
		}
		if back, err := wire.DecodeControl(frame.Append(nil)); err != nil || !reflect.DeepEqual(back, frame) {
			t.Errorf("%+v became %+v, %v", frame, back, err)
		}
	})
}

func FuzzDecodeBuffer(f *testing.F) {
	f.Add(wire.Buffer{Channel: 1, Sequence: 2, Type: wire.TypeData, Next: wire.TypeData, Backlog: 9, Base: -1, Checksum: 5, Payload: 100}.AppendHead(nil), 100)
	f.Add(wire.Buffer{Channel: 1, Type: wire.TypeEvent, Payload: 3}.AppendHead(nil), 3)
	f.Fuzz(func(t *testing.T, head []byte, payload int) {
		size := len(head) + max(0, payload)%(2*wire.MaxPayload)
		h, err := wire.DecodeBuffer(head, size)
		if err != nil {
			return
		}
		if h.Payload < 0 || h.Payload > wire.MaxPayload || h.Payload > size {
			t.Fatalf("payload of %d bytes in a frame of %d", h.Payload, size)
		}
		again := h.AppendHead(nil)
		if back, err := wire.DecodeBuffer(again, len(again)+h.Payload); err != nil || back != h {
			t.Errorf("%+v became %+v, %v", h, back, err)
		}
	})
}

func FuzzDecodeEvent(f *testing.F) {
	for _, c := range events {
		f.Add(wire.AppendEvent(nil, c.event))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := wire.DecodeEvent(b)
		if err != nil {
			return
		}
		if back, err := wire.DecodeEvent(wire.AppendEvent(nil, e)); err != nil || back != e {
			t.Errorf("%+v became %+v, %v", e, back, err)
		}
	})
}

// FuzzCut cuts any bytes into elements, whole and in two views, and wants the same.
func FuzzCut(f *testing.F) {
	f.Add(sample(true, 7), uint16(5), int64(7), true)
	f.Add(sample(false, 0), uint16(20), int64(0), false)
	f.Add([]byte{0x80, 0x80, 0x80, 0x80, 0x7F, 1}, uint16(2), int64(0), false)
	f.Fuzz(func(t *testing.T, b []byte, at uint16, base int64, keyed bool) {
		whole, errWhole := cutAll(keyed, base, b)
		cut := min(int(at), len(b))
		split, errSplit := cutAll(keyed, base, b[:cut], b[cut:])
		if (errWhole == nil) != (errSplit == nil) || !reflect.DeepEqual(whole, split) {
			t.Errorf("whole %v %v, cut at %d %v %v", whole, errWhole, cut, split, errSplit)
		}
	})
}
