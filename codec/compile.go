package codec

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

// maxDepth bounds the nesting of a type.
const maxDepth = 64

// maxArray bounds the bytes that an array encodes to at least, so that sizes
// cannot overflow.
const maxArray = 1 << 30

var (
	timeType        = reflect.TypeFor[time.Time]()
	durationType    = reflect.TypeFor[time.Duration]()
	appenderType    = reflect.TypeFor[encoding.BinaryAppender]()
	marshalerType   = reflect.TypeFor[encoding.BinaryMarshaler]()
	unmarshalerType = reflect.TypeFor[encoding.BinaryUnmarshaler]()
	messageType     = reflect.TypeFor[proto.Message]()
)

// cacheKey names a compiled type; keys of maps and streams have programs of their own.
type cacheKey struct {
	typ reflect.Type
	key bool
}

var cache sync.Map // cacheKey to *program

func programOf(t reflect.Type, key bool) (*program, error) {
	if p, ok := cache.Load(cacheKey{t, key}); ok {
		return p.(*program), nil
	}
	c := compiler{open: make(map[reflect.Type]bool)}
	p, err := c.program(t, t.String(), key)
	if err != nil {
		return nil, err
	}
	cache.Store(cacheKey{t, key}, p)
	return p, nil
}

// compiler holds the types between the outermost one and the current one.
type compiler struct {
	open map[reflect.Type]bool
}

// program compiles a type that is encoded on its own: an outermost type, an
// element, a key.
func (c *compiler) program(t reflect.Type, path string, key bool) (*program, error) {
	p := &program{typ: t}
	schema, err := c.add(p, t, 0, path, key)
	if err != nil {
		return nil, err
	}
	p.schema, p.local = schema, true
	for i := range p.ops {
		p.local = p.local && p.ops[i].local()
		p.min += p.ops[i].smallest()
		p.pointers = p.pointers || p.ops[i].refers()
	}
	p.flat = flatOf(p)
	return p, nil
}

// refers says whether a decoded value has pointers.
func (o *op) refers() bool {
	switch o.kind {
	case opString, opBytes, opSlice, opMap, opPointer, opOwn, opProto:
		return true
	case opTime:
		return false // the location is always UTC
	case opArray:
		return o.extra.elem.pointers
	}
	return false
}

func unsupported(path, reason string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrUnsupported, path, fmt.Sprintf(reason, args...))
}

// add appends the operations of a value of type t at offset off, and returns its schema.
func (c *compiler) add(p *program, t reflect.Type, off uintptr, path string, key bool) (string, error) {
	if c.open[t] {
		return "", unsupported(path, "%s contains itself", t)
	}
	if len(c.open) >= maxDepth {
		return "", unsupported(path, "nested more than %d deep", maxDepth)
	}
	c.open[t] = true
	defer delete(c.open, t)

	switch {
	case t == timeType:
		p.ops = append(p.ops, op{kind: opTime, off: off})
		return "time", nil
	case t == durationType:
		p.ops = append(p.ops, op{kind: opInt64, off: off})
		return "duration", nil
	case isOwn(t) && !inherits(t):
		p.ops = append(p.ops, op{kind: opOwn, off: off, extra: &extra{typ: t}})
		return "own(" + t.PkgPath() + "." + t.Name() + ")", nil
	case t.Implements(messageType):
		return c.addMessage(p, t, off, path, key)
	}
	if kind, name, ok := scalar(t.Kind(), key); ok {
		p.ops = append(p.ops, op{kind: kind, off: off})
		return name, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return c.addStruct(p, t, off, path, key)
	case reflect.Array:
		return c.addArray(p, t, off, path, key)
	case reflect.Slice, reflect.Map, reflect.Pointer:
		if key {
			return "", unsupported(path, "%s in a key", t)
		}
		return c.addReference(p, t, off, path)
	}
	return "", unsupported(path, "%s", t)
}

// isOwn says whether a type brings its own encoding.
func isOwn(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || t.Name() == "" {
		return false
	}
	pt := reflect.PointerTo(t)
	return (pt.Implements(appenderType) || pt.Implements(marshalerType)) && pt.Implements(unmarshalerType)
}

// inherits says whether a struct may have its encoding from an embedded field, which
// would leave out the others.
func inherits(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && (f.Type == timeType || isOwn(f.Type)) {
			return true
		}
	}
	return false
}

func scalar(k reflect.Kind, key bool) (opKind, string, bool) {
	switch k {
	case reflect.Bool:
		return opBool, "bool", true
	case reflect.Int8:
		return opByte, "int8", true
	case reflect.Uint8:
		return opByte, "uint8", true
	case reflect.Int16:
		return opInt16, "int16", true
	case reflect.Int32:
		return opInt32, "int32", true
	case reflect.Int64, reflect.Int:
		return opInt64, "int64", true
	case reflect.Uint16:
		return opUint16, "uint16", true
	case reflect.Uint32:
		return opUint32, "uint32", true
	case reflect.Uint64, reflect.Uint, reflect.Uintptr:
		return opUint64, "uint64", true
	case reflect.Float32:
		if key {
			return opKeyFloat32, "float32", true
		}
		return opFloat32, "float32", true
	case reflect.Float64:
		if key {
			return opKeyFloat64, "float64", true
		}
		return opFloat64, "float64", true
	case reflect.String:
		return opString, "string", true
	}
	return 0, "", false
}

// addMessage adds a pointer to a protobuf message.
func (c *compiler) addMessage(p *program, t reflect.Type, off uintptr, path string, key bool) (string, error) {
	switch {
	case key:
		return "", unsupported(path, "protobuf message %s in a key", t)
	case t.Kind() != reflect.Pointer:
		return "", unsupported(path, "%s is a protobuf message but no pointer to a generated struct", t)
	}
	m := reflect.New(t.Elem()).Interface().(proto.Message)
	p.ops = append(p.ops, op{kind: opProto, off: off, extra: &extra{typ: t.Elem()}})
	return "proto(" + string(m.ProtoReflect().Descriptor().FullName()) + ")", nil
}

func (c *compiler) addStruct(p *program, t reflect.Type, off uintptr, path string, key bool) (string, error) {
	if reflect.PointerTo(t).Implements(messageType) {
		return "", unsupported(path, "protobuf message %s by value; use a pointer", t)
	}
	if inherits(t) {
		return "", unsupported(path, "an embedded field has an encoding that %s inherits; give the field a name", t)
	}
	var text []string
	names, ids := make(map[string]bool), make(map[int]bool)
	for i := range t.NumField() {
		f := t.Field(i)
		name, id, skip, err := fieldTag(f, len(text)+1)
		at := path + "." + f.Name
		switch {
		case err != nil:
			return "", unsupported(at, "%s", err)
		case skip:
			if key {
				return "", unsupported(at, "field left out of a key")
			}
			continue
		case !f.IsExported() && !(f.Anonymous && f.Type.Kind() == reflect.Struct):
			return "", unsupported(at, `unexported field; export it, tag it codec:"-", or give %s its own encoding`, t)
		case names[name]:
			return "", unsupported(at, "two fields are called %q", name)
		case ids[id]:
			return "", unsupported(at, "two fields have the number %d", id)
		}
		names[name], ids[id] = true, true
		schema, err := c.add(p, f.Type, off+f.Offset, at, key)
		if err != nil {
			return "", err
		}
		text = append(text, fmt.Sprintf("%d %s %s", id, name, schema))
	}
	return "struct{" + strings.Join(text, "; ") + "}", nil
}

// fieldTag reads a field's tag; without one the name is the field's and the number
// its position.
func fieldTag(f reflect.StructField, position int) (name string, id int, skip bool, err error) {
	tag := f.Tag.Get("codec")
	if tag == "-" {
		return "", 0, true, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	if name == "" {
		name = f.Name
	}
	if strings.ContainsAny(name, " ;{}()\"\n") {
		return "", 0, false, fmt.Errorf("tag %q: bad name", tag)
	}
	id = position
	if options != "" {
		number, ok := strings.CutPrefix(options, "id=")
		id, err = strconv.Atoi(number)
		if !ok || err != nil || id < 1 {
			return "", 0, false, fmt.Errorf("tag %q: want name,id=NUMBER", tag)
		}
	}
	return name, id, false, nil
}

func (c *compiler) addArray(p *program, t reflect.Type, off uintptr, path string, key bool) (string, error) {
	elem, err := c.program(t.Elem(), path+"[]", key)
	if err != nil {
		return "", err
	}
	if elem.min > 0 && t.Len() > maxArray/elem.min {
		return "", unsupported(path, "%s is too long", t)
	}
	x := &extra{typ: t, elem: elem, count: t.Len(), size: t.Elem().Size()}
	kind := opArray
	if len(elem.ops) == 1 && elem.ops[0].kind == opByte && x.size == 1 {
		kind = opRaw
	}
	// What takes no bytes needs no operation, so that only empty programs write nothing.
	if o := (op{kind: kind, off: off, extra: x}); o.smallest() > 0 {
		p.ops = append(p.ops, o)
	}
	return fmt.Sprintf("[%d]%s", t.Len(), elem.schema), nil
}

// addReference adds a slice, a map or a pointer.
func (c *compiler) addReference(p *program, t reflect.Type, off uintptr, path string) (string, error) {
	suffix := "[]"
	if t.Kind() == reflect.Pointer {
		suffix = "*"
	}
	elem, err := c.program(t.Elem(), path+suffix, false)
	if err != nil {
		return "", err
	}
	x := &extra{typ: t, elem: elem, size: t.Elem().Size()}
	switch t.Kind() {
	case reflect.Slice:
		if len(elem.ops) == 1 && elem.ops[0].kind == opByte && elem.schema == "uint8" {
			p.ops = append(p.ops, op{kind: opBytes, off: off, extra: x})
			return "bytes", nil
		}
		p.ops = append(p.ops, op{kind: opSlice, off: off, extra: x})
		return "[]" + elem.schema, nil
	case reflect.Pointer:
		p.ops = append(p.ops, op{kind: opPointer, off: off, extra: x})
		return "*" + elem.schema, nil
	default:
		if x.key, err = c.program(t.Key(), path+"[key]", true); err != nil {
			return "", err
		}
		p.ops = append(p.ops, op{kind: opMap, off: off, extra: x})
		return "map[" + x.key.schema + "]" + elem.schema, nil
	}
}
