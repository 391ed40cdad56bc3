package wire

import (
	"encoding/binary"
	"fmt"
)

// Protobuf's wire types that we use.
const (
	typeVarint  = 0
	typeBytes   = 2
	typeFixed32 = 5
)

func appendTag(b []byte, num, typ int) []byte { return append(b, byte(num<<3|typ)) }

// appendUint appends a varint field, unless it has the default value.
func appendUint(b []byte, num int, v uint64) []byte {
	if v == 0 {
		return b
	}
	return binary.AppendUvarint(appendTag(b, num, typeVarint), v)
}

// appendSint appends a zigzag field, unless it has the default value.
func appendSint(b []byte, num int, v int64) []byte { return appendUint(b, num, zigzag(v)) }

func appendBytes[T []byte | string](b []byte, num int, v T) []byte {
	if len(v) == 0 {
		return b
	}
	b = binary.AppendUvarint(appendTag(b, num, typeBytes), uint64(len(v)))
	return append(b, v...)
}

// uvarintLen is the number of bytes of v as a varint.
func uvarintLen(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}

// appendMessage appends a message field whose content fn appends. The length is
// put in front afterwards: contents are short, and control frames are rare.
func appendMessage(b []byte, num int, fn func(b []byte) []byte) []byte {
	b = appendTag(b, num, typeBytes)
	start := len(b)
	b = fn(b)
	n := len(b) - start
	var size [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(size[:], uint64(n))
	b = append(b, size[:k]...)
	copy(b[start+k:], b[start:start+n])
	copy(b[start:], size[:k])
	return b
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// fields reads a message field by field.
type fields struct {
	b    []byte // what is left
	last int    // number of the field before
	err  error
}

// field is one field; which of v and bytes is set depends on typ.
type field struct {
	num, typ int
	v        uint64
	bytes    []byte
}

// next reads the next field. It returns false at the end and after an error.
func (f *fields) next() (field, bool) {
	if f.err != nil || len(f.b) == 0 {
		return field{}, false
	}
	x := field{num: int(f.b[0] >> 3), typ: int(f.b[0] & 7)}
	if f.b[0] >= 0x80 || x.num <= f.last {
		return field{}, f.fail("field %d after %d: %w", x.num, f.last, ErrMalformed)
	}
	f.last = x.num
	f.b = f.b[1:]
	switch x.typ {
	case typeVarint:
		var ok bool
		if x.v, ok = f.uvarint(); !ok {
			return field{}, f.fail("number of field %d: %w", x.num, ErrMalformed)
		}
	case typeBytes:
		n, ok := f.uvarint()
		if !ok || n > uint64(len(f.b)) {
			return field{}, f.fail("length of field %d: %w", x.num, ErrMalformed)
		}
		x.bytes, f.b = f.b[:n:n], f.b[n:]
	case typeFixed32:
		if len(f.b) < 4 {
			return field{}, f.fail("field %d is cut: %w", x.num, ErrMalformed)
		}
		x.v, f.b = uint64(binary.LittleEndian.Uint32(f.b)), f.b[4:]
	default:
		return field{}, f.fail("wire type %d of field %d: %w", x.typ, x.num, ErrMalformed)
	}
	return x, true
}

func (f *fields) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		return 0, false
	}
	f.b = f.b[n:]
	return v, true
}

// fail keeps the first error.
func (f *fields) fail(format string, args ...any) bool {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
	return false
}

// number takes a varint field of at most limit.
func (f *fields) number(x field, limit uint64) uint64 {
	if x.typ != typeVarint || x.v > limit {
		f.fail("field %d is %d, wants at most %d: %w", x.num, x.v, limit, ErrMalformed)
		return 0
	}
	return x.v
}

// flag takes a boolean field.
func (f *fields) flag(x field) bool { return f.number(x, 1) == 1 }

// data takes a bytes field of at most limit bytes.
func (f *fields) data(x field, limit int) []byte {
	if x.typ != typeBytes {
		f.fail("field %d is no bytes: %w", x.num, ErrMalformed)
		return nil
	}
	if len(x.bytes) > limit {
		f.fail("field %d has %d bytes of at most %d: %w", x.num, len(x.bytes), limit, ErrTooLarge)
		return nil
	}
	return x.bytes
}

// id takes a bytes field of exactly 16 bytes.
func (f *fields) id(x field) (id [16]byte) {
	b := f.data(x, len(id))
	if f.err == nil && len(b) != len(id) {
		f.fail("field %d has %d bytes, wants 16: %w", x.num, len(b), ErrMalformed)
		return id
	}
	copy(id[:], b)
	return id
}

// unknown is the answer to a field that the message does not have.
func (f *fields) unknown(x field) { f.fail("unknown field %d: %w", x.num, ErrMalformed) }

// only takes the single message field of a union.
func only(b []byte) (num int, content []byte, err error) {
	f := fields{b: b}
	x, ok := f.next()
	switch {
	case f.err != nil:
		return 0, nil, f.err
	case !ok || x.typ != typeBytes || len(f.b) != 0:
		return 0, nil, fmt.Errorf("not one message of %d bytes: %w", len(b), ErrMalformed)
	}
	return x.num, x.bytes, nil
}
