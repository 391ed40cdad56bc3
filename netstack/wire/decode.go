package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/weirflow/weir"
)

// IsBuffer says whether a frame that begins with these bytes is a Buffer frame.
func IsBuffer(prefix []byte) bool {
	return len(prefix) > 0 && prefix[0] == numBuffer<<3|typeBytes
}

// DecodeBuffer reads the head of a Buffer frame of size bytes from its first bytes,
// at least min(size, [MaxBufferHead]) of them. The payload is the frame's last
// Payload bytes.
func DecodeBuffer(prefix []byte, size int) (Buffer, error) {
	if !IsBuffer(prefix) {
		return Buffer{}, fmt.Errorf("no buffer frame: %w", ErrMalformed)
	}
	n, k := binary.Uvarint(prefix[1:])
	if k <= 0 || n != uint64(size-1-k) {
		return Buffer{}, fmt.Errorf("buffer frame of %d bytes: %w", size, ErrMalformed)
	}
	var h Buffer
	f := fields{b: prefix[1+k:]}
	left := size - 1 - k // bytes of the frame from f.b on
	for f.err == nil && left > 0 {
		before := len(f.b)
		if before > 0 && f.b[0] == 8<<3|typeBytes {
			h.Payload = f.payload(left)
			break
		}
		x, ok := f.next()
		if !ok {
			f.fail("head of a buffer frame is cut: %w", ErrMalformed)
			break
		}
		left -= before - len(f.b)
		f.bufferField(&h, x)
	}
	return h, f.err
}

// payload reads the tag and length of the payload, which ends the frame.
func (f *fields) payload(left int) int {
	n, k := binary.Uvarint(f.b[1:])
	switch {
	case k <= 0 || n != uint64(left-1-k):
		f.fail("length of a buffer's payload: %w", ErrMalformed)
	case n > MaxPayload:
		f.fail("payload of %d bytes: %w", n, ErrTooLarge)
	}
	return int(n)
}

func (f *fields) bufferField(h *Buffer, x field) {
	switch x.num {
	case 1:
		h.Channel = uint32(f.number(x, maxUint32))
	case 2:
		h.Sequence = uint32(f.number(x, maxUint32))
	case 3:
		h.Type = DataType(f.number(x, uint64(typeEnd-1)))
	case 4:
		h.Next = DataType(f.number(x, uint64(typeEnd-1)))
	case 5:
		h.Backlog = uint32(f.number(x, MaxCredit))
	case 6:
		h.Base = unzigzag(f.number(x, math.MaxUint64))
	case 7:
		if x.typ != typeFixed32 {
			f.unknown(x)
		}
		h.Checksum = uint32(x.v)
	default:
		f.unknown(x)
	}
}

// DecodeControl reads a frame that is no Buffer.
func DecodeControl(b []byte) (Frame, error) {
	if len(b) > MaxControl {
		return nil, fmt.Errorf("control frame of %d bytes: %w", len(b), ErrTooLarge)
	}
	num, content, err := only(b)
	if err != nil {
		return nil, err
	}
	f := fields{b: content}
	frame := f.control(num)
	if f.err != nil {
		return nil, f.err
	}
	return frame, nil
}

func (f *fields) control(num int) Frame {
	switch num {
	case numHello:
		return f.hello()
	case numOpenChannel:
		return f.openChannel()
	case numAddCredit:
		c := f.numbers(2)
		if c[1] > MaxCredit {
			f.fail("credit of %d: %w", c[1], ErrTooLarge)
		}
		return AddCredit{Channel: c[0], Credit: c[1]}
	case numResume:
		return Resume{Channel: f.numbers(1)[0]}
	case numCloseChannel:
		return CloseChannel{Channel: f.numbers(1)[0]}
	case numFailure:
		return f.failure()
	case numBacklog:
		c := f.numbers(2)
		if c[1] > MaxCredit {
			f.fail("backlog of %d: %w", c[1], ErrTooLarge)
		}
		return Backlog{Channel: c[0], Backlog: c[1]}
	case numBufferSize:
		c := f.numbers(2)
		if c[1] < 1 || c[1] > MaxPayload {
			f.fail("buffers of %d bytes: %w", c[1], ErrMalformed)
		}
		return BufferSize{Channel: c[0], Size: c[1]}
	}
	f.fail("frame %d: %w", num, ErrMalformed)
	return nil
}

// numbers reads a message of n 32-bit numbers.
func (f *fields) numbers(n int) (v [2]uint32) {
	for x, ok := f.next(); ok; x, ok = f.next() {
		if x.num > n {
			f.unknown(x)
			return v
		}
		v[x.num-1] = uint32(f.number(x, maxUint32))
	}
	return v
}

func (f *fields) hello() Hello {
	var h Hello
	var said string
	var version uint64
	for x, ok := f.next(); ok; x, ok = f.next() {
		switch x.num {
		case 1:
			said = string(f.data(x, len(magic)))
		case 2:
			version = f.number(x, maxUint32)
		case 3:
			h.Cluster = string(f.data(x, MaxCluster))
		case 4:
			h.TaskManager = f.id(x)
		case 5:
			h.Incarnation = weir.Incarnation(f.number(x, math.MaxUint64))
		case 6:
			h.Peer = f.id(x)
		case 7:
			h.PeerIncarnation = weir.Incarnation(f.number(x, math.MaxUint64))
		case 8:
			h.Checksums = f.flag(x)
		default:
			f.unknown(x)
		}
		// A later version may have other fields; what it is stands in the first two.
		if x.num >= 2 && (said != magic || version != Version) {
			f.err = nil
			break
		}
	}
	if f.err == nil && (said != magic || version != Version) {
		f.fail("hello of %q version %d, want %q %d: %w", said, version, magic, Version, ErrVersion)
	}
	return h
}

func (f *fields) openChannel() OpenChannel {
	var o OpenChannel
	for x, ok := f.next(); ok; x, ok = f.next() {
		switch x.num {
		case 1:
			o.Channel = uint32(f.number(x, maxUint32))
		case 2:
			o.Output = uint32(f.number(x, math.MaxInt32))
		case 3:
			o.Subpartition = uint32(f.number(x, math.MaxInt32))
		case 4:
			o.Producer = f.attempt(x)
		case 5:
			o.Consumer = f.attempt(x)
		case 6:
			o.Epoch = weir.LeaderEpoch(f.number(x, math.MaxUint64))
		case 7:
			o.Credit = uint32(f.number(x, MaxCredit))
		case 8:
			o.WithoutExclusive = f.flag(x)
		default:
			f.unknown(x)
		}
	}
	if o.Channel == 0 {
		f.fail("channel 0: %w", ErrMalformed)
	}
	return o
}

func (f *fields) failure() Failure {
	var r Failure
	for x, ok := f.next(); ok; x, ok = f.next() {
		switch x.num {
		case 1:
			r.Channel = uint32(f.number(x, maxUint32))
		case 2:
			r.Code = FailureCode(min(f.number(x, maxUint32), uint64(codeEnd)))
		case 3:
			r.Message = string(f.data(x, MaxMessage))
		case 4:
			r.Cause = f.attempt(x)
		default:
			f.unknown(x)
		}
	}
	if r.Code == codeEnd {
		r.Code = CodeUnknown
	}
	return r
}

// attempt reads a field that holds an attempt.
func (f *fields) attempt(x field) weir.AttemptID {
	in := fields{b: f.data(x, MaxControl)}
	var a weir.AttemptID
	for y, ok := in.next(); ok; y, ok = in.next() {
		switch y.num {
		case 1:
			a.Job = in.id(y)
		case 2:
			a.Vertex = int32(in.number(y, math.MaxInt32))
		case 3:
			a.Subtask = int32(in.number(y, math.MaxInt32))
		case 4:
			a.Epoch = weir.LeaderEpoch(in.number(y, math.MaxUint64))
		case 5:
			a.N = int32(in.number(y, math.MaxInt32))
		default:
			in.unknown(y)
		}
	}
	if in.err != nil {
		f.fail("attempt: %w", in.err)
	}
	return a
}
