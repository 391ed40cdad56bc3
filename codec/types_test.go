package codec

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var plainTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[time.Duration](),
}

var otherTypes = []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[[]byte](), reflect.TypeFor[time.Time](), reflect.TypeFor[failing](), reflect.TypeFor[struct{}]()}

// drawType draws any type that can be encoded.
func drawType(t *rapid.T, depth int) reflect.Type {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 {
		kind %= 2
	}
	switch kind {
	case 0, 1:
		if kind == 0 {
			return rapid.SampledFrom(plainTypes).Draw(t, "plain")
		}
		return rapid.SampledFrom(append(otherTypes, plainTypes...)).Draw(t, "any")
	case 2, 3:
		fields := make([]reflect.StructField, rapid.IntRange(0, 4).Draw(t, "fields"))
		for i := range fields {
			fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: drawType(t, depth-1)}
		}
		return reflect.StructOf(fields)
	case 4:
		return reflect.ArrayOf(rapid.IntRange(0, 3).Draw(t, "length"), drawType(t, depth-1))
	case 5:
		return reflect.SliceOf(drawType(t, depth-1))
	case 6:
		return reflect.PointerTo(drawType(t, depth-1))
	default:
		key := rapid.SampledFrom([]reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int16](), reflect.TypeFor[[2]bool]()}).Draw(t, "key")
		return reflect.MapOf(key, drawType(t, depth-1))
	}
}

// fill draws a value.
func fill(t *rapid.T, v reflect.Value) {
	switch {
	case v.Type() == timeType:
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()))
		return
	case v.Type() == reflect.TypeFor[failing]():
		v.Field(0).SetInt(rapid.Int64Range(0, 300).Draw(t, "n"))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(rapid.Float32().Draw(t, "float")))
	case reflect.String:
		v.SetString(rapid.StringN(0, 5, 200).Draw(t, "string"))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Slice:
		if n := rapid.IntRange(-1, 3).Draw(t, "len"); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i))
			}
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Map:
		if n := rapid.IntRange(-1, 3).Draw(t, "len"); n >= 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(t, key)
				fill(t, value)
				v.SetMapIndex(key, value)
			}
		}
	}
}

// TestValuesOfAnyTypeSurvive draws types, not only values: the operations on
// offsets must not depend on a layout that we happened to think of.
func TestValuesOfAnyTypeSurvive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		typ := drawType(t, 3)
		p, err := programOf(typ, false)
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		v, w := reflect.New(typ), reflect.New(typ)
		fill(t, v.Elem())
		fill(t, w.Elem()) // decoding replaces all of it
		b, err := p.append([]byte("x"), v.UnsafePointer())
		if err != nil {
			t.Fatal(err)
		}
		b = b[1:]
		if len(b) < p.min {
			t.Fatalf("%s: %d bytes, said to have at least %d", typ, len(b), p.min)
		}
		rest, err := p.decode(b, w.UnsafePointer())
		if err != nil || len(rest) != 0 || !reflect.DeepEqual(v.Interface(), w.Interface()) {
			t.Fatalf("%s: %v, %d bytes left\nwant %+v\ngot  %+v", typ, err, len(rest), v.Elem(), w.Elem())
		}
		again, err := p.append(nil, w.UnsafePointer())
		if err != nil || string(again) != string(b) {
			t.Fatalf("%s: %x became %x", typ, b, again)
		}
		if l := layoutOf(p); l != nil {
			fixed, u := make([]byte, l.size), reflect.New(typ)
			l.put(fixed, v.UnsafePointer())
			if err := l.get(fixed, u.UnsafePointer()); err != nil || !reflect.DeepEqual(v.Interface(), u.Interface()) {
				t.Fatalf("%s: fixed-size form: %v", typ, err)
			}
		}
	})
}
