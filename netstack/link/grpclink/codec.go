package grpclink

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/mem"

	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/link"
)

// maxHead is the part of a frame beside a large payload: what a segment reserves for
// it. Heads may be longer, as control frames are; those are copied with their payload.
const maxHead = 64

// copyBelow is the size up to which gRPC does not tell when it is done with a
// buffer, so such payloads are copied (grpc's pooling threshold, 1 KiB).
const copyBelow = 1 << 10

// outgoing is the frame that a connection is sending. It belongs to the connection
// and is used anew for each frame.
type outgoing struct {
	head    []byte
	payload buffer.View
	taken   bool // the codec has taken the payload's reference over
}

// incoming is the frame that a connection received last.
type incoming struct {
	slices mem.BufferSlice
	parts  [][]byte
}

// release gives the frame's memory back to gRPC.
func (in *incoming) release() {
	in.slices.Free()
	in.slices = in.slices[:0]
	clear(in.parts)
	in.parts = in.parts[:0]
}

// frame holds what gRPC refers to until it has written it. It plays the pool to
// which gRPC returns the payload, which is how we learn of that.
type frame struct {
	head    [maxHead]byte
	bytes   []byte
	payload buffer.View
}

var frames = sync.Pool{New: func() any { return new(frame) }}

// Get is never called: gRPC asks its own pool.
func (f *frame) Get(int) *[]byte { panic("grpclink: a frame is no pool to get from") }

// Put is called once, when gRPC is done with the payload.
func (f *frame) Put(*[]byte) {
	payload := f.payload
	f.payload, f.bytes = buffer.View{}, nil
	frames.Put(f)
	payload.Release()
}

// codec hands frames through.
type codec struct{}

// Name is the content subtype.
func (codec) Name() string { return "weir-frame" }

// Marshal refers to the frame's bytes.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	out, ok := v.(*outgoing)
	if !ok {
		return nil, fmt.Errorf("grpclink sends frames, not %T", v)
	}
	out.taken = true
	if out.payload.Len() <= copyBelow || len(out.head) > maxHead {
		small := make([]byte, 0, len(out.head)+out.payload.Len())
		small = append(small, out.head...)
		small = append(small, out.payload.Bytes()...)
		out.payload.Release()
		return mem.BufferSlice{mem.SliceBuffer(small)}, nil
	}
	f := frames.Get().(*frame)
	f.payload = out.payload
	f.bytes = f.payload.Bytes()
	n := copy(f.head[:], out.head)
	return mem.BufferSlice{mem.SliceBuffer(f.head[:n:n]), mem.NewBuffer(&f.bytes, f)}, nil
}

// Unmarshal keeps references to the received pieces.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*incoming)
	if !ok {
		return fmt.Errorf("grpclink receives frames, not %T", v)
	}
	data.Ref()
	in.slices = append(in.slices[:0], data...)
	for _, b := range data {
		in.parts = append(in.parts, b.ReadOnlyData())
	}
	return nil
}

// tooLarge says whether a frame of these sizes must not be sent.
func tooLarge(head, payload int) bool {
	return head+payload > link.MaxFrame
}
