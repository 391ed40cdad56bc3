package wire

import (
	"encoding/binary"

	"github.com/weirflow/weir"
)

// Append implements [Frame].
func (h Hello) Append(b []byte) []byte {
	return appendMessage(b, numHello, func(b []byte) []byte {
		b = appendBytes(b, 1, magic)
		b = appendUint(b, 2, Version)
		b = appendBytes(b, 3, h.Cluster)
		b = appendBytes(b, 4, h.TaskManager[:])
		b = appendUint(b, 5, uint64(h.Incarnation))
		b = appendBytes(b, 6, h.Peer[:])
		b = appendUint(b, 7, uint64(h.PeerIncarnation))
		return appendBool(b, 8, h.Checksums)
	})
}

// Append implements [Frame].
func (o OpenChannel) Append(b []byte) []byte {
	return appendMessage(b, numOpenChannel, func(b []byte) []byte {
		b = appendUint(b, 1, uint64(o.Channel))
		b = appendUint(b, 2, uint64(o.Output))
		b = appendUint(b, 3, uint64(o.Subpartition))
		b = appendAttempt(b, 4, o.Producer)
		b = appendAttempt(b, 5, o.Consumer)
		b = appendUint(b, 6, uint64(o.Epoch))
		b = appendUint(b, 7, uint64(o.Credit))
		return appendBool(b, 8, o.WithoutExclusive)
	})
}

// AppendHead appends everything of the frame but its payload, whose h.Payload bytes
// the caller sends right behind. It allocates nothing if b has [MaxBufferHead] bytes
// to spare.
func (h Buffer) AppendHead(b []byte) []byte {
	var inner [MaxBufferHead]byte
	in := appendUint(inner[:0], 1, uint64(h.Channel))
	in = appendUint(in, 2, uint64(h.Sequence))
	in = appendUint(in, 3, uint64(h.Type))
	in = appendUint(in, 4, uint64(h.Next))
	in = appendUint(in, 5, uint64(h.Backlog))
	in = appendSint(in, 6, h.Base)
	if h.Checksum != 0 {
		in = binary.LittleEndian.AppendUint32(appendTag(in, 7, typeFixed32), h.Checksum)
	}
	if h.Payload > 0 {
		in = binary.AppendUvarint(appendTag(in, 8, typeBytes), uint64(h.Payload))
	}
	b = binary.AppendUvarint(appendTag(b, numBuffer, typeBytes), uint64(len(in)+h.Payload))
	return append(b, in...)
}

// Append implements [Frame].
func (c AddCredit) Append(b []byte) []byte {
	return appendNumbers(b, numAddCredit, c.Channel, c.Credit)
}

// Append implements [Frame].
func (l Backlog) Append(b []byte) []byte { return appendNumbers(b, numBacklog, l.Channel, l.Backlog) }

// Append implements [Frame].
func (s BufferSize) Append(b []byte) []byte {
	return appendNumbers(b, numBufferSize, s.Channel, s.Size)
}

// appendNumbers appends a message of two numbers.
func appendNumbers(b []byte, num int, first, second uint32) []byte {
	n := fieldLen(first) + fieldLen(second)
	b = append(appendTag(b, num, typeBytes), byte(n))
	return appendUint(appendUint(b, 1, uint64(first)), 2, uint64(second))
}

// Append implements [Frame].
func (r Resume) Append(b []byte) []byte {
	b = append(appendTag(b, numResume, typeBytes), byte(fieldLen(r.Channel)))
	return appendUint(b, 1, uint64(r.Channel))
}

// Append implements [Frame].
func (c CloseChannel) Append(b []byte) []byte {
	b = append(appendTag(b, numCloseChannel, typeBytes), byte(fieldLen(c.Channel)))
	return appendUint(b, 1, uint64(c.Channel))
}

// Append implements [Frame]. A message that is too long is cut.
func (f Failure) Append(b []byte) []byte {
	return appendMessage(b, numFailure, func(b []byte) []byte {
		b = appendUint(b, 1, uint64(f.Channel))
		b = appendUint(b, 2, uint64(f.Code))
		b = appendBytes(b, 3, f.Message[:min(len(f.Message), MaxMessage)])
		if f.Cause != (weir.AttemptID{}) {
			b = appendAttempt(b, 4, f.Cause)
		}
		return b
	})
}

func appendAttempt(b []byte, num int, a weir.AttemptID) []byte {
	return appendMessage(b, num, func(b []byte) []byte {
		b = appendBytes(b, 1, a.Job[:])
		b = appendUint(b, 2, uint64(uint32(a.Vertex)))
		b = appendUint(b, 3, uint64(uint32(a.Subtask)))
		b = appendUint(b, 4, uint64(a.Epoch))
		return appendUint(b, 5, uint64(uint32(a.N)))
	})
}

func appendBool(b []byte, num int, v bool) []byte {
	if !v {
		return b
	}
	return appendUint(b, num, 1)
}

// fieldLen is the length of a varint field, 0 if it is left out.
func fieldLen(v uint32) int {
	if v == 0 {
		return 0
	}
	return 1 + uvarintLen(uint64(v))
}
