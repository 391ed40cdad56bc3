package codec

import (
	"encoding"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"
)

// sliceHeader is a slice as it lies in memory.
type sliceHeader struct {
	data unsafe.Pointer
	len  int
	cap  int
}

// append runs the program over the value at base.
func (p *program) append(b []byte, base unsafe.Pointer) ([]byte, error) {
	if p.local {
		return appendOps(b, p.ops, base)
	}
	var err error
	for i := range p.ops {
		if o := &p.ops[i]; o.local() {
			b, err = appendOps(b, p.ops[i:i+1], base)
		} else {
			b, err = o.appendForeign(b, unsafe.Add(base, o.off))
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// local says whether an operation keeps the address of its value to itself. Others
// show it to reflection or to a user's code, so it must be on the heap.
func (o *op) local() bool {
	return o.kind != opMap && o.kind != opOwn && (o.kind != opArray || o.extra.elem.local)
}

// appendOps runs local operations. The value may lie on the stack: base does not escape.
func appendOps(b []byte, ops []op, base unsafe.Pointer) ([]byte, error) {
	var err error
	for i := range ops {
		o := &ops[i]
		q := unsafe.Add(base, o.off)
		switch o.kind {
		case opString:
			s := *(*string)(q)
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		case opInt64:
			b = binary.AppendVarint(b, *(*int64)(q))
		case opFloat64:
			b = binary.LittleEndian.AppendUint64(b, *(*uint64)(q))
		case opUint64:
			b = binary.AppendUvarint(b, *(*uint64)(q))
		case opInt32:
			b = binary.AppendVarint(b, int64(*(*int32)(q)))
		case opUint32:
			b = binary.AppendUvarint(b, uint64(*(*uint32)(q)))
		case opBool, opByte:
			b = append(b, *(*byte)(q))
		case opFloat32:
			b = binary.LittleEndian.AppendUint32(b, *(*uint32)(q))
		case opBytes:
			s := *(*[]byte)(q)
			b = appendLength(b, len(s), s == nil)
			b = append(b, s...)
		case opInt16:
			b = binary.AppendVarint(b, int64(*(*int16)(q)))
		case opUint16:
			b = binary.AppendUvarint(b, uint64(*(*uint16)(q)))
		case opKeyFloat32:
			b = binary.LittleEndian.AppendUint32(b, canonical32(*(*float32)(q)))
		case opKeyFloat64:
			b = binary.LittleEndian.AppendUint64(b, canonical64(*(*float64)(q)))
		default:
			if b, err = o.append(b, q); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// append encodes a composite value by a local operation.
func (o *op) append(b []byte, q unsafe.Pointer) ([]byte, error) {
	x := o.extra
	switch o.kind {
	case opTime:
		t := (*time.Time)(q)
		b = binary.AppendVarint(b, t.Unix())
		return binary.AppendUvarint(b, uint64(t.Nanosecond())), nil
	case opRaw:
		return append(b, unsafe.Slice((*byte)(q), x.count)...), nil
	case opArray:
		var err error
		for i := range x.count {
			if b, err = appendOps(b, x.elem.ops, unsafe.Add(q, uintptr(i)*x.size)); err != nil {
				return b, err
			}
		}
		return b, nil
	case opSlice:
		s := (*sliceHeader)(q)
		b = appendLength(b, s.len, s.data == nil)
		return x.appendElements(b, s.data, s.len)
	}
	target := *(*unsafe.Pointer)(q)
	switch {
	case target == nil:
		return append(b, 0), nil
	case o.kind == opPointer:
		return x.elem.append(append(b, 1), target)
	default: // opProto
		m := reflect.NewAt(x.typ, target).Interface().(proto.Message)
		return appendSized(append(b, 1), func(b []byte) ([]byte, error) {
			return proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
		})
	}
}

// appendForeign encodes a value by an operation that is not local.
func (o *op) appendForeign(b []byte, q unsafe.Pointer) ([]byte, error) {
	x := o.extra
	switch o.kind {
	case opArray:
		return x.appendElements(b, q, x.count)
	case opMap:
		return x.appendMap(b, reflect.NewAt(x.typ, q).Elem())
	default: // opOwn
		return appendSized(b, func(b []byte) ([]byte, error) { return appendOwn(b, reflect.NewAt(x.typ, q).Interface()) })
	}
}

// appendLength writes a length that tells nil from empty: 0 is nil, n+1 is n.
func appendLength(b []byte, n int, isNil bool) []byte {
	if isNil {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(n)+1)
}

func (x *extra) appendElements(b []byte, data unsafe.Pointer, n int) ([]byte, error) {
	if len(x.elem.ops) == 0 {
		return b, nil
	}
	var err error
	for i := range n {
		if b, err = x.elem.append(b, unsafe.Add(data, uintptr(i)*x.size)); err != nil {
			return b, err
		}
	}
	return b, nil
}

// entry is a map's entry in a buffer of encoded entries.
type entry struct{ key, end, start int }

// appendMap writes the entries in the order of their encoded keys.
func (x *extra) appendMap(b []byte, m reflect.Value) ([]byte, error) {
	b = appendLength(b, m.Len(), m.IsNil())
	if m.Len() == 0 {
		return b, nil
	}
	key, value := reflect.New(x.key.typ), reflect.New(x.elem.typ)
	entries := make([]entry, 0, m.Len())
	var all []byte
	var err error
	for it := m.MapRange(); it.Next(); {
		key.Elem().SetIterKey(it)
		value.Elem().SetIterValue(it)
		e := entry{start: len(all)}
		if all, err = x.key.append(all, key.UnsafePointer()); err != nil {
			return b, err
		}
		e.key = len(all)
		if all, err = x.elem.append(all, value.UnsafePointer()); err != nil {
			return b, err
		}
		e.end = len(all)
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(e, f entry) int {
		if c := slices.Compare(all[e.start:e.key], all[f.start:f.key]); c != 0 {
			return c
		}
		return slices.Compare(all[e.key:e.end], all[f.key:f.end]) // several NaNs
	})
	for _, e := range entries {
		b = append(b, all[e.start:e.end]...)
	}
	return b, nil
}

func appendOwn(b []byte, v any) ([]byte, error) {
	if a, ok := v.(encoding.BinaryAppender); ok {
		return a.AppendBinary(b)
	}
	own, err := v.(encoding.BinaryMarshaler).MarshalBinary()
	return append(b, own...), err
}

// appendSized writes what fn appends behind its length.
func appendSized(b []byte, fn func([]byte) ([]byte, error)) ([]byte, error) {
	start := len(b)
	b = append(b, 0)
	b, err := fn(b)
	if err != nil {
		return b, err
	}
	n := len(b) - start - 1
	if n < 1<<7 {
		b[start] = byte(n)
		return b, nil
	}
	var length [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(length[:], uint64(n))
	return slices.Replace(b, start, start+1, length[:k]...), nil
}

// canonical32 and canonical64 are the bits of a float in a key.
func canonical32(f float32) uint32 {
	switch {
	case f == 0:
		return 0
	case f != f:
		return 0x7fc00000
	}
	return math.Float32bits(f)
}

func canonical64(f float64) uint64 {
	switch {
	case f == 0:
		return 0
	case f != f:
		return 0x7ff8000000000000
	}
	return math.Float64bits(f)
}
