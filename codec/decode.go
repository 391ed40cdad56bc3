package codec

import (
	"encoding"
	"encoding/binary"
	"math"
	"reflect"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"
)

// maxEmpty bounds the count of elements that take no bytes.
const maxEmpty = math.MaxInt32

func getUvarint(b []byte) (uint64, []byte, error) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:], nil
	}
	v, k := binary.Uvarint(b)
	if k <= 0 {
		return 0, nil, errVarint
	}
	return v, b[k:], nil
}

func getVarint(b []byte) (int64, []byte, error) {
	u, rest, err := getUvarint(b)
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v, rest, err
}

// decode runs the program backwards into the value at base and returns what is left.
func (p *program) decode(b []byte, base unsafe.Pointer) ([]byte, error) {
	var err error
	for i := range p.ops {
		o := &p.ops[i]
		q := unsafe.Add(base, o.off)
		if o.kind == opString && len(b) > 0 && b[0] < 0x80 { // most strings are short: spare calls
			n := int(b[0])
			b = b[1:]
			if n > len(b) {
				return nil, errLength
			}
			*(*string)(q) = unsafe.String(unsafe.SliceData(b), n)
			b = b[n:]
			continue
		}
		switch o.kind {
		case opString:
			var n uint64
			if n, b, err = getUvarint(b); err != nil {
				return nil, err
			}
			if n > uint64(len(b)) {
				return nil, errLength
			}
			*(*string)(q) = unsafe.String(unsafe.SliceData(b), int(n))
			b = b[n:]
		case opInt64:
			var v int64
			if v, b, err = getVarint(b); err != nil {
				return nil, err
			}
			*(*int64)(q) = v
		case opUint64:
			var v uint64
			if v, b, err = getUvarint(b); err != nil {
				return nil, err
			}
			*(*uint64)(q) = v
		case opFloat64, opKeyFloat64:
			if len(b) < 8 {
				return nil, errShort
			}
			*(*uint64)(q) = binary.LittleEndian.Uint64(b)
			b = b[8:]
		case opFloat32, opKeyFloat32:
			if len(b) < 4 {
				return nil, errShort
			}
			*(*uint32)(q) = binary.LittleEndian.Uint32(b)
			b = b[4:]
		case opInt16, opInt32, opUint16, opUint32, opBool, opByte:
			if b, err = o.decodeSmall(b, q); err != nil {
				return nil, err
			}
		default:
			if b, err = o.decode(b, q); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// decodeSmall reads the numbers whose range must be checked.
func (o *op) decodeSmall(b []byte, q unsafe.Pointer) ([]byte, error) {
	switch o.kind {
	case opBool, opByte:
		if len(b) < 1 {
			return nil, errShort
		}
		if o.kind == opBool && b[0] > 1 {
			return nil, errBool
		}
		*(*byte)(q) = b[0]
		return b[1:], nil
	case opInt16, opInt32:
		v, rest, err := getVarint(b)
		switch {
		case err != nil:
			return nil, err
		case o.kind == opInt16 && int64(int16(v)) == v:
			*(*int16)(q) = int16(v)
		case o.kind == opInt32 && int64(int32(v)) == v:
			*(*int32)(q) = int32(v)
		default:
			return nil, errRange
		}
		return rest, nil
	default:
		v, rest, err := getUvarint(b)
		switch {
		case err != nil:
			return nil, err
		case o.kind == opUint16 && v <= math.MaxUint16:
			*(*uint16)(q) = uint16(v)
		case o.kind == opUint32 && v <= math.MaxUint32:
			*(*uint32)(q) = uint32(v)
		default:
			return nil, errRange
		}
		return rest, nil
	}
}

// decode reads a composite value.
func (o *op) decode(b []byte, q unsafe.Pointer) ([]byte, error) {
	x := o.extra
	switch o.kind {
	case opBytes:
		return decodeBytes(b, (*[]byte)(q))
	case opTime:
		return decodeTime(b, (*time.Time)(q))
	case opRaw:
		if len(b) < x.count {
			return nil, errShort
		}
		copy(unsafe.Slice((*byte)(q), x.count), b)
		return b[x.count:], nil
	case opArray:
		return x.decodeElements(b, q, x.count)
	case opSlice:
		return x.decodeSlice(b, (*sliceHeader)(q))
	case opMap:
		return x.decodeMap(b, reflect.NewAt(x.typ, q).Elem())
	case opPointer:
		set, rest, err := getFlag(b)
		if err != nil || !set {
			*(*unsafe.Pointer)(q) = nil
			return rest, err
		}
		target := reflect.New(x.elem.typ).UnsafePointer()
		*(*unsafe.Pointer)(q) = target
		return x.elem.decode(rest, target)
	case opOwn:
		own, rest, err := getSized(b)
		if err != nil {
			return nil, err
		}
		v := reflect.NewAt(x.typ, q)
		v.Elem().SetZero()
		return rest, v.Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(own)
	default:
		return x.decodeMessage(b, (*unsafe.Pointer)(q))
	}
}

func getFlag(b []byte) (set bool, rest []byte, err error) {
	if len(b) < 1 {
		return false, nil, errShort
	}
	if b[0] > 1 {
		return false, nil, errFlag
	}
	return b[0] == 1, b[1:], nil
}

// getSized returns the bytes behind a length.
func getSized(b []byte) (content, rest []byte, err error) {
	n, b, err := getUvarint(b)
	if err != nil {
		return nil, nil, err
	}
	if n > uint64(len(b)) {
		return nil, nil, errLength
	}
	return b[:n:n], b[n:], nil
}

// getLength reads what appendLength wrote. smallest is the least size of an element.
func getLength(b []byte, smallest int) (n int, isNil bool, rest []byte, err error) {
	u, rest, err := getUvarint(b)
	if err != nil || u == 0 {
		return 0, true, rest, err
	}
	u--
	limit := uint64(maxEmpty)
	if smallest > 0 {
		limit = uint64(len(rest) / smallest)
	}
	if u > limit {
		return 0, false, nil, errLength
	}
	return int(u), false, rest, nil
}

func decodeBytes(b []byte, v *[]byte) ([]byte, error) {
	n, isNil, rest, err := getLength(b, 1)
	if err != nil || isNil {
		*v = nil
		return rest, err
	}
	*v = rest[:n:n]
	return rest[n:], nil
}

func decodeTime(b []byte, t *time.Time) ([]byte, error) {
	seconds, b, err := getVarint(b)
	if err != nil {
		return nil, err
	}
	nanos, b, err := getUvarint(b)
	if err != nil {
		return nil, err
	}
	if nanos >= uint64(time.Second) {
		return nil, errTime
	}
	*t = time.Unix(seconds, int64(nanos)).UTC()
	return b, nil
}

func (x *extra) decodeElements(b []byte, data unsafe.Pointer, n int) ([]byte, error) {
	if len(x.elem.ops) == 0 {
		return b, nil
	}
	var err error
	for i := range n {
		if b, err = x.elem.decode(b, unsafe.Add(data, uintptr(i)*x.size)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (x *extra) decodeSlice(b []byte, s *sliceHeader) ([]byte, error) {
	n, isNil, rest, err := getLength(b, x.elem.min)
	if err != nil || isNil {
		*s = sliceHeader{}
		return rest, err
	}
	if x.elem.min == 0 && x.size > 0 {
		return nil, errLength // elements of skipped fields alone: memory without bytes
	}
	data := reflect.MakeSlice(x.typ, n, n).UnsafePointer()
	*s = sliceHeader{data, n, n}
	return x.decodeElements(rest, data, n)
}

func (x *extra) decodeMap(b []byte, m reflect.Value) ([]byte, error) {
	n, isNil, b, err := getLength(b, x.key.min+x.elem.min)
	m.SetZero()
	if err != nil || isNil {
		return b, err
	}
	if x.key.min == 0 && n > 1 {
		return nil, errLength // a key of no bytes has one value
	}
	m.Set(reflect.MakeMapWithSize(x.typ, n))
	var last []byte
	for i := range n {
		key, value := reflect.New(x.key.typ), reflect.New(x.elem.typ)
		start := b
		if b, err = x.key.decode(b, key.UnsafePointer()); err != nil {
			return nil, err
		}
		encoded := start[:len(start)-len(b)]
		if i > 0 && string(last) >= string(encoded) && key.Elem().Equal(key.Elem()) {
			return nil, errDuplicate
		}
		last = encoded
		if b, err = x.elem.decode(b, value.UnsafePointer()); err != nil {
			return nil, err
		}
		m.SetMapIndex(key.Elem(), value.Elem())
	}
	return b, nil
}

func (x *extra) decodeMessage(b []byte, target *unsafe.Pointer) ([]byte, error) {
	set, b, err := getFlag(b)
	if err != nil || !set {
		*target = nil
		return b, err
	}
	content, rest, err := getSized(b)
	if err != nil {
		return nil, err
	}
	v := reflect.New(x.typ)
	*target = v.UnsafePointer()
	return rest, proto.Unmarshal(content, v.Interface().(proto.Message))
}
