package codec

import (
	"encoding/binary"
	"math/bits"
	"time"
	"unsafe"

	"github.com/weirflow/weir/internal/assert"
)

// shortText is the length from which on a text's length takes two bytes.
const shortText = 0x80

// flat is what the size of a value is computed from, if that needs no look at what the
// value points to.
type flat struct {
	constant int       // bytes of every value; one for the length of each text among them
	texts    []uintptr // offsets of texts
	others   []op      // the other operations of no constant size
}

// flatOf returns nil for programs whose sizes are not to be seen so.
func flatOf(p *program) *flat {
	f := &flat{}
	for _, o := range p.ops {
		switch o.kind {
		case opBool, opByte, opFloat32, opKeyFloat32, opFloat64, opKeyFloat64, opRaw:
			f.constant += o.smallest()
		case opString:
			f.constant++
			f.texts = append(f.texts, o.off)
		case opInt16, opInt32, opInt64, opUint16, opUint32, opUint64, opBytes, opTime:
			f.others = append(f.others, o)
		default:
			return nil
		}
	}
	return f
}

// Value is a value that is to be encoded, without its type: [Codec.Value] makes it. It
// does not keep the value alive longer than a pointer to it would, nor on the heap.
type Value struct {
	program *program
	base    unsafe.Pointer
}

// Flat says whether Value may be used: values consist of numbers, texts, bytes, times,
// and structs of them.
func (c *Codec[T]) Flat() bool { return c.program.flat != nil }

// Value is *v without its type. The codec must be flat.
func (c *Codec[T]) Value(v *T) Value { return Value{c.program, unsafe.Pointer(v)} }

// Size is the length of what Append appends.
func (v Value) Size() int {
	f := v.program.flat
	n := f.constant
	for _, off := range f.texts {
		k := len(*(*string)(unsafe.Add(v.base, off)))
		if n += k; k >= shortText {
			n += uvarintLen(uint64(k)) - 1
		}
	}
	if len(f.others) > 0 {
		return n + sizeOps(f.others, v.base)
	}
	return n
}

// Put writes what Append appends to dst, whose length is Size. Until a value has
// something else than a short text, it calls nothing: a call would cost more than the
// text.
func (v Value) Put(dst []byte) {
	ops, d, at, i := v.program.ops, unsafe.Pointer(unsafe.SliceData(dst)), 0, 0
	for ; i < len(ops) && ops[i].kind == opString; i++ {
		s := *(*string)(unsafe.Add(v.base, ops[i].off))
		n := len(s)
		if n >= shortText || n >= len(dst)-at {
			break
		}
		*(*byte)(unsafe.Add(d, at)) = byte(n)
		at++
		p := unsafe.Pointer(unsafe.StringData(s))
		switch {
		case n >= 16: // words from the front, and one that ends with the text
			last := n - 16
			for k := 0; k < last; k += 16 {
				*(*[16]byte)(unsafe.Add(d, at+k)) = *(*[16]byte)(unsafe.Add(p, k))
			}
			*(*[16]byte)(unsafe.Add(d, at+last)) = *(*[16]byte)(unsafe.Add(p, last))
		case n >= 8:
			*(*[8]byte)(unsafe.Add(d, at)) = *(*[8]byte)(p)
			*(*[8]byte)(unsafe.Add(d, at+n-8)) = *(*[8]byte)(unsafe.Add(p, n-8))
		default:
			for k := range n {
				*(*byte)(unsafe.Add(d, at+k)) = *(*byte)(unsafe.Add(p, k))
			}
		}
		at += n
	}
	if i < len(ops) || at < len(dst) {
		putOps(dst[at:], ops[i:], v.base)
	}
}

// sizeOps is the size of what is no text and has no constant size.
func sizeOps(ops []op, base unsafe.Pointer) (n int) {
	for i := range ops {
		o := &ops[i]
		q := unsafe.Add(base, o.off)
		switch o.kind {
		case opInt64:
			n += varintLen(*(*int64)(q))
		case opUint64:
			n += uvarintLen(*(*uint64)(q))
		case opInt32:
			n += varintLen(int64(*(*int32)(q)))
		case opUint32:
			n += uvarintLen(uint64(*(*uint32)(q)))
		case opInt16:
			n += varintLen(int64(*(*int16)(q)))
		case opUint16:
			n += uvarintLen(uint64(*(*uint16)(q)))
		case opTime:
			t := (*time.Time)(q)
			n += varintLen(t.Unix()) + uvarintLen(uint64(t.Nanosecond()))
		default: // opBytes
			n++
			if s := *(*[]byte)(q); s != nil {
				n += uvarintLen(uint64(len(s))+1) - 1 + len(s)
			}
		}
	}
	return n
}

// putOps runs operations of a flat program, whose bytes fill dst.
func putOps(dst []byte, ops []op, base unsafe.Pointer) {
	for i := range ops {
		o := &ops[i]
		dst = dst[o.put(dst, unsafe.Add(base, o.off)):]
	}
	assert.That(len(dst) == 0, "%d bytes too much for a value", len(dst))
}

// put runs one of them.
func (o *op) put(dst []byte, q unsafe.Pointer) int {
	switch o.kind {
	case opString:
		s := *(*string)(q)
		n := binary.PutUvarint(dst, uint64(len(s)))
		return n + copy(dst[n:n+len(s)], s)
	case opInt64:
		return binary.PutVarint(dst, *(*int64)(q))
	case opFloat64:
		binary.LittleEndian.PutUint64(dst, *(*uint64)(q))
		return 8
	case opUint64:
		return binary.PutUvarint(dst, *(*uint64)(q))
	case opInt32:
		return binary.PutVarint(dst, int64(*(*int32)(q)))
	case opUint32:
		return binary.PutUvarint(dst, uint64(*(*uint32)(q)))
	case opBool, opByte:
		dst[0] = *(*byte)(q)
		return 1
	case opFloat32:
		binary.LittleEndian.PutUint32(dst, *(*uint32)(q))
		return 4
	case opInt16:
		return binary.PutVarint(dst, int64(*(*int16)(q)))
	case opUint16:
		return binary.PutUvarint(dst, uint64(*(*uint16)(q)))
	case opKeyFloat32:
		binary.LittleEndian.PutUint32(dst, canonical32(*(*float32)(q)))
		return 4
	case opKeyFloat64:
		binary.LittleEndian.PutUint64(dst, canonical64(*(*float64)(q)))
		return 8
	case opRaw:
		return copy(dst[:o.extra.count], unsafe.Slice((*byte)(q), o.extra.count))
	case opTime:
		t := (*time.Time)(q)
		n := binary.PutVarint(dst, t.Unix())
		return n + binary.PutUvarint(dst[n:], uint64(t.Nanosecond()))
	default: // opBytes
		s := *(*[]byte)(q)
		if s == nil {
			dst[0] = 0
			return 1
		}
		n := binary.PutUvarint(dst, uint64(len(s))+1)
		return n + copy(dst[n:n+len(s)], s)
	}
}

func varintLen(v int64) int { return uvarintLen(uint64(v)<<1 ^ uint64(v>>63)) }

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
