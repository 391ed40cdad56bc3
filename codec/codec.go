package codec

import (
	"reflect"
	"strconv"
	"unsafe"
)

// Codec encodes and decodes values of one type. [For] and [ForKey] make it.
type Codec[T any] struct {
	program *program
	fixed   *layout // nil unless values are pointer-free and small enough
	memory  bool    // the fixed-size form is the value's memory
	text    bool    // values are strings
}

// For returns the codec of records and state values of type T, or an error that
// wraps [ErrUnsupported].
//
// Supported are booleans, integers, floats, strings, time.Time (as an instant),
// time.Duration, and structs, arrays, slices, maps and pointers of supported types;
// types with AppendBinary or MarshalBinary and UnmarshalBinary; and pointers to
// protobuf messages. Struct fields are exported, or tagged `codec:"-"`; a tag
// `codec:"name,id=3"` gives a field a name and a number for the schema.
func For[T any]() (*Codec[T], error) { return newCodec[T](false) }

// ForKey returns the codec of keys of type K, or an error that wraps
// [ErrUnsupported]. Keys that are equal have equal encodings, and equal encodings
// mean equal keys; -0 is +0, and NaN is one key. Pointers are refused, because they
// are equal by address. A key type with its own encoding must keep the rule itself.
func ForKey[K comparable]() (*Codec[K], error) { return newCodec[K](true) }

func newCodec[T any](key bool) (*Codec[T], error) {
	p, err := programOf(reflect.TypeFor[T](), key)
	if err != nil {
		return nil, err
	}
	c := &Codec[T]{program: p, fixed: layoutOf(p)}
	c.memory = c.fixed.isMemory(reflect.TypeFor[T]().Size())
	c.text = len(p.ops) == 1 && p.ops[0].kind == opString && p.typ.Kind() == reflect.String
	return c, nil
}

// Append appends the encoding of *v to b. An error is that of a user's own encoding.
func (c *Codec[T]) Append(b []byte, v *T) ([]byte, error) {
	return c.program.append(b, unsafe.Pointer(v))
}

// Local says whether AppendLocal may be used: no user's own encoding and no map is in a
// value itself. What it points to does not count.
func (c *Codec[T]) Local() bool { return c.program.local }

// AppendLocal is Append for a variable on the stack, which stays there. The codec must
// be local.
func (c *Codec[T]) AppendLocal(b []byte, v *T) ([]byte, error) {
	return appendOps(b, c.program.ops, unsafe.Pointer(v))
}

// Decode reads a value that fills b. Strings and byte slices of the value alias b.
// After an error *v holds parts of a value.
func (c *Codec[T]) Decode(b []byte, v *T) error {
	rest, err := c.program.decode(b, unsafe.Pointer(v))
	if len(rest) != 0 {
		return errTrailing
	}
	return err
}

// Schema is the canonical text of the type's schema.
func (c *Codec[T]) Schema() string { return c.program.schema }

// HasPointers says whether decoded values refer to memory outside themselves, which
// may be the input's.
func (c *Codec[T]) HasPointers() bool { return c.program.pointers }

// FixedSize is the size of the fixed-size form of values, or 0 if the type has
// none: it has pointers, or exceeds 4096 bytes, or is empty.
func (c *Codec[T]) FixedSize() int {
	if c.fixed == nil {
		return 0
	}
	return c.fixed.size
}

// FixedSchema is the schema of the fixed-size form: that of the value, marked with
// the size.
func (c *Codec[T]) FixedSchema() string {
	return "fixed " + strconv.Itoa(c.FixedSize()) + " " + c.program.schema
}

// IsMemory says whether the fixed-size form of a value is the value as it lies in memory,
// and any bytes are a value.
func (c *Codec[T]) IsMemory() bool { return c.memory }

// PutFixed writes the fixed-size form into dst, whose length is FixedSize.
func (c *Codec[T]) PutFixed(dst []byte, v *T) {
	if c.memory && uintptr(len(dst)) == unsafe.Sizeof(*v) {
		*(*T)(unsafe.Pointer(unsafe.SliceData(dst))) = *v
		return
	}
	c.fixed.put(dst, unsafe.Pointer(v))
}

// GetFixed reads the fixed-size form.
func (c *Codec[T]) GetFixed(src []byte, v *T) error {
	if c.memory && uintptr(len(src)) == unsafe.Sizeof(*v) {
		*v = *(*T)(unsafe.Pointer(unsafe.SliceData(src)))
		return nil
	}
	return c.fixed.get(src, unsafe.Pointer(v))
}

// Find returns the part of b that is the encoding of *v, which is there if *v is a
// string that was decoded from b; or nil. It saves encoding a key that a record has.
func (c *Codec[T]) Find(b []byte, v *T) []byte {
	if !c.text {
		return nil
	}
	s := *(*string)(unsafe.Pointer(v))
	at := uintptr(unsafe.Pointer(unsafe.StringData(s))) - uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	end := at + uintptr(len(s))
	// Where s is no part of b, at is beyond its end, or end wraps around.
	if at == 0 || at > end || end > uintptr(len(b)) || len(s) >= 0x80 || int(b[at-1]) != len(s) {
		return nil
	}
	return b[at-1 : end : end]
}
