package codec

import "reflect"

// opKind says what one operation encodes.
type opKind uint8

const (
	opBool opKind = iota
	opByte        // one byte as it is: int8, uint8
	opInt16
	opInt32
	opInt64 // also int and time.Duration
	opUint16
	opUint32
	opUint64 // also uint and uintptr
	opFloat32
	opFloat64
	opKeyFloat32 // normalised
	opKeyFloat64
	opString
	opBytes
	opRaw // an array of bytes
	// The rest has an extra.
	opTime
	opArray
	opSlice
	opMap
	opPointer
	opOwn
	opProto
)

// op encodes the value at an offset from the base of the outermost struct: nested
// structs are flattened. It is 24 bytes, so that a table of five fits two cache lines.
type op struct {
	kind  opKind
	off   uintptr
	extra *extra
}

// extra is what composite operations need.
type extra struct {
	typ   reflect.Type // of the value itself
	elem  *program     // of elements, map values, what a pointer points to
	key   *program     // of map keys
	count int          // array length
	size  uintptr      // of an element in memory
}

// program is the compiled form of a type. It is immutable.
type program struct {
	typ      reflect.Type
	ops      []op
	schema   string
	min      int   // least number of bytes of an encoding
	pointers bool  // values refer to other memory
	local    bool  // so are all operations
	flat     *flat // nil if sizes are not to be seen without following pointers
}

// smallest returns the least number of bytes that an operation writes.
func (o *op) smallest() int {
	switch o.kind {
	case opFloat32, opKeyFloat32:
		return 4
	case opFloat64, opKeyFloat64:
		return 8
	case opTime:
		return 2
	case opRaw:
		return o.extra.count
	case opArray:
		return o.extra.count * o.extra.elem.min
	default:
		return 1
	}
}
