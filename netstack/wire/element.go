package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// Bounds of elements, in bytes.
const (
	MaxElement     = 256 << 20 // an element without its length
	MaxElementHead = 24        // everything before a record's payload: 5 + 1 + 10 + 8
)

// NoTimestamp marks a record without a timestamp.
const NoTimestamp int64 = math.MinInt64

// Kind says what an element is. 0 is none, so that cleared memory is no element.
type Kind uint8

// Kinds of elements.
const (
	KindRecord      Kind = iota + 1 // without timestamp
	KindTimedRecord                 // with timestamp
	KindWatermark
	KindIdle   // the producer became idle
	KindActive // the producer is active again
	kindEnd
)

var kindNames = [...]string{"none", "record", "timed-record", "watermark", "idle", "active"}

func (k Kind) String() string {
	if k < kindEnd {
		return kindNames[k]
	}
	return "unknown"
}

// IsRecord says whether the element is a record.
func (k Kind) IsRecord() bool { return k == KindRecord || k == KindTimedRecord }

// Element is one element, as [Cut] finds it.
type Element struct {
	Kind      Kind
	Timestamp int64  // of a record (or NoTimestamp) or a watermark
	Hash      uint64 // of a record on a keyed edge
	Payload   []byte // of a record; aliases what it was cut from
}

// PutRecordHead writes what stands before the payload of a record of size bytes to
// dst, which has room for [MaxElementHead] bytes, and returns its length. base is the
// base timestamp of the segment that the first byte will lie in.
func PutRecordHead(dst []byte, keyed bool, hash uint64, base, timestamp int64, size int) int {
	_ = dst[MaxElementHead-1]
	var delta uint64
	kind, body := KindRecord, 1+size
	if timestamp != NoTimestamp {
		kind = KindTimedRecord
		delta = zigzag(timestamp - base)
		body += (bits.Len64(delta|1) + 6) / 7
	}
	if keyed {
		body += 8
	}
	n := putUvarint(dst, uint64(body))
	dst[n] = byte(kind)
	n++
	if kind == KindTimedRecord {
		n += putUvarint(dst[n:], delta)
	}
	if keyed {
		binary.LittleEndian.PutUint64(dst[n:], hash)
		n += 8
	}
	return n
}

// PutKeyedHead is PutRecordHead for a record on a keyed edge. It puts the usual head
// together in a register: a timestamp near the base, and a short record.
func PutKeyedHead(dst *[MaxElementHead]byte, hash uint64, base, timestamp int64, size int) int {
	delta := zigzag(timestamp - base)
	if delta >= 1<<14 || uint(size) >= 1<<13 || timestamp == NoTimestamp {
		return PutRecordHead(dst[:], true, hash, base, timestamp, size)
	}
	body, n, word := uint64(size)+1+1+8, 3, delta
	if delta >= 1<<7 {
		body, n, word = body+1, 4, delta&0x7f|0x80|delta>>7<<8
	}
	word = word<<8 | uint64(KindTimedRecord)
	if body < 1<<7 {
		word = word<<8 | body
	} else {
		word = word<<16 | body>>7<<8 | body&0x7f | 0x80
		n++
	}
	binary.LittleEndian.PutUint64(dst[:], word)
	binary.LittleEndian.PutUint64(dst[n:n+8], hash)
	return n + 8
}

// PutWatermark writes a watermark to dst, which has room for [MaxElementHead] bytes,
// and returns its length.
func PutWatermark(dst []byte, base, watermark int64) int {
	delta := zigzag(watermark - base)
	dst[0] = byte(1 + uvarintLen(delta))
	dst[1] = byte(KindWatermark)
	return 2 + putUvarint(dst[2:], delta)
}

// PutStatus writes KindIdle or KindActive to dst and returns its length.
func PutStatus(dst []byte, k Kind) int {
	dst[0], dst[1] = 1, byte(k)
	return 2
}

// putUvarint is binary.PutUvarint without a loop for small numbers. dst has room for
// the longest.
func putUvarint(dst []byte, v uint64) int {
	if v < 1<<7 {
		dst[0] = byte(v)
		return 1
	}
	if v < 1<<14 {
		dst[0], dst[1] = byte(v)|0x80, byte(v>>7)
		return 2
	}
	return binary.PutUvarint(dst, v)
}

// Cut reads the element at the start of b; base is the base timestamp of the segment
// that its first byte lay in. It returns the element's length n. If n > len(b) the
// element is not complete and e is not set: at least n bytes are needed.
func Cut(b []byte, base int64, keyed bool, e *Element) (n int, err error) {
	body, k := uint64(0), 1
	switch {
	case len(b) == 0:
		return 1, nil
	case b[0] < 0x80:
		body = uint64(b[0])
	default:
		if body, k = binary.Uvarint(b); k == 0 && len(b) < binary.MaxVarintLen32 {
			return len(b) + 1, nil
		}
	}
	if k <= 0 || k > binary.MaxVarintLen32 || body == 0 || body > MaxElement {
		return 0, fmt.Errorf("length of an element: %w", ErrMalformed)
	}
	n = k + int(body)
	if n > len(b) {
		return n, nil
	}
	return n, e.read(b[k:n:n], base, keyed)
}

// read takes the element's body apart.
func (e *Element) read(b []byte, base int64, keyed bool) error {
	*e = Element{Kind: Kind(b[0]), Timestamp: NoTimestamp}
	b = b[1:]
	if e.Kind == KindTimedRecord || e.Kind == KindWatermark {
		delta, k := binary.Uvarint(b)
		if k <= 0 {
			return fmt.Errorf("timestamp of an element: %w", ErrMalformed)
		}
		e.Timestamp = base + unzigzag(delta)
		b = b[k:]
	}
	if e.Kind.IsRecord() {
		if keyed {
			if len(b) < 8 {
				return fmt.Errorf("hash of an element: %w", ErrMalformed)
			}
			e.Hash = binary.LittleEndian.Uint64(b)
			b = b[8:]
		}
		e.Payload = b
		return nil
	}
	if e.Kind == 0 || e.Kind >= kindEnd || len(b) != 0 {
		return fmt.Errorf("element of kind %d with %d bytes too many: %w", e.Kind, len(b), ErrMalformed)
	}
	return nil
}
