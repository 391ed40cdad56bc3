package codec

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"
)

type Order struct {
	OrderID   string
	UserID    string
	Price     float64
	EventTime int64
	Country   string
}

type inner struct {
	A int8
	B []string
}

type Everything struct {
	Bool     bool
	I        int
	I8       int8
	I16      int16
	I32      int32
	I64      int64
	U        uint
	U8       uint8
	U16      uint16
	U32      uint32
	U64      uint64
	F32      float32
	F64      float64
	S        string
	Bytes    []byte
	Time     time.Time
	Duration time.Duration
	Nested   struct{ X, Y int32 }
	inner
	List   []Order
	Raw    [4]byte
	Array  [2]string
	Map    map[string]int64
	ByNum  map[float64][]int16
	Ptr    *Order
	PtrPtr **int
	Addr   netip.Addr
	Proto  *timestamppb.Timestamp
	Skip   func() `codec:"-"`
	Empty  []struct{}
	None   [0]int
}

func mustFor[T any](t testing.TB) *Codec[T] {
	t.Helper()
	c, err := For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func full() Everything {
	n := 7
	p := &n
	return Everything{
		Bool: true, I: -1, I8: -8, I16: -16, I32: -32, I64: math.MinInt64, U: 1, U8: 8, U16: 16, U32: 32, U64: math.MaxUint64,
		F32: 1.5, F64: -2.5, S: "héllo", Bytes: []byte{1, 2}, Time: time.Unix(1700000000, 123456789).UTC(), Duration: time.Second,
		Nested: struct{ X, Y int32 }{1, 2}, inner: inner{3, []string{"a", ""}},
		List: []Order{{OrderID: "o"}, {Price: 3}}, Raw: [4]byte{1, 2, 3, 4}, Array: [2]string{"x", "y"},
		Map: map[string]int64{"b": 2, "a": 1, "c": 3}, ByNum: map[float64][]int16{-1: {1}, 2: nil, 0.5: {}},
		Ptr: &Order{Country: "de"}, PtrPtr: &p, Addr: netip.MustParseAddr("10.0.0.1"),
		Proto: &timestamppb.Timestamp{Seconds: 5}, Empty: make([]struct{}, 3),
	}
}

func equal(a, b Everything) bool {
	if !proto.Equal(a.Proto, b.Proto) {
		return false
	}
	a.Proto, b.Proto = nil, nil
	return reflect.DeepEqual(a, b)
}

func TestValuesOfEveryKindSurvive(t *testing.T) {
	t.Parallel()
	c := mustFor[Everything](t)
	for name, v := range map[string]Everything{"full": full(), "zero": {}} {
		b, err := c.Append(nil, &v)
		if err != nil {
			t.Fatal(err)
		}
		got := full() // decoding replaces everything
		if err := c.Decode(b, &got); err != nil || !equal(v, got) {
			t.Errorf("%s: %v\nwant %+v\ngot  %+v", name, err, v, got)
		}
		for n := range b {
			var cut Everything
			if err := c.Decode(b[:n], &cut); err == nil {
				t.Errorf("%s: no error after %d of %d bytes", name, n, len(b))
			}
		}
		var long Everything
		if err := c.Decode(append(b, 0), &long); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: trailing byte: %v", name, err)
		}
	}
}

func TestZeroTimeStaysZero(t *testing.T) {
	t.Parallel()
	c := mustFor[time.Time](t)
	for _, v := range []time.Time{{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.Local)} {
		b, err := c.Append(nil, &v)
		if err != nil {
			t.Fatal(err)
		}
		var got time.Time
		if err := c.Decode(b, &got); err != nil || !got.Equal(v) || got != v.UTC() || got.IsZero() != v.IsZero() {
			t.Errorf("%v became %v, %v", v, got, err)
		}
	}
}

// TestGolden pins the bytes and the schema: they are on disk and on the wire.
func TestGolden(t *testing.T) {
	t.Parallel()
	v := full()
	v.Proto = &timestamppb.Timestamp{Seconds: 5}
	c := mustFor[Everything](t)
	b, err := c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	const want = "01" + "01f81f3fffffffffffffffffff01" + "01081020ffffffffffffffffff01" + // booleans and integers
		"0000c03f" + "00000000000004c0" + "0668c3a96c6c6f" + "030102" + // floats, string, bytes
		"80c49fd50c959aef3a" + "80a8d6b907" + "0204" + "0303016100" + // time, duration, nested, inner
		"03016f0000000000000000000000" + "00000000000000000840000001020304" + "01780179" + // list, raw, array
		"04016102016204016306" + // map, sorted
		"04000000000000004000" + "000000000000e03f01" + "000000000000f0bf0202" + // map by float
		"010000000000000000000000026465" + "01010e" + "040a000001" + "01020805" + "04"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("bytes changed:\n%s\n%s", got, want)
	}
	const schema = "struct{1 OrderID string; 2 UserID string; 3 Price float64; 4 EventTime int64; 5 Country string}"
	if got := mustFor[Order](t).Schema(); got != schema {
		t.Errorf("schema %s", got)
	}
	type tagged struct {
		B map[uint8]*[2]bool `codec:"b,id=9"`
		A []byte             `codec:",id=4"`
		T time.Time
		D time.Duration `codec:"-"`
		N netip.Addr    `codec:"n"`
		P *timestamppb.Timestamp
	}
	if _, err := For[tagged](); err == nil || !strings.Contains(err.Error(), "number 4") {
		t.Errorf("colliding numbers: %v", err)
	}
	type numbered struct {
		B map[uint8]*[2]bool `codec:"b,id=9"`
		A []byte             `codec:",id=4"`
		T time.Time
		N netip.Addr             `codec:"n,id=7"`
		P *timestamppb.Timestamp `codec:",id=8"`
	}
	const numberedSchema = "struct{9 b map[uint8]*[2]bool; 4 A bytes; 3 T time; 7 n own(net/netip.Addr); 8 P proto(google.protobuf.Timestamp)}"
	if got := mustFor[numbered](t).Schema(); got != numberedSchema {
		t.Errorf("schema %s", got)
	}
}

func TestHashGolden(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]uint64{
		"":         0x2d06800538d394c2,
		"a":        0xe6c632b61e964e1f,
		"key-07":   0x13cf75c6f818955a,
		"weirflow": 0x5fc178a8bb94ff2f,

		"0123456789abcdef0123456789abcdef": 0x1121d5b6c0ac055,
	} {
		if got := Hash([]byte(in)); got != want {
			t.Errorf("hash of %q is %#x, want %#x", in, got, want)
		}
	}
}

type recursive struct{ Next *recursive }
type embedsTime struct {
	time.Time
	More int
}

func TestUnsupportedTypesAreNamedWithTheirPath(t *testing.T) {
	t.Parallel()
	check := func(err error, want string) {
		t.Helper()
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := For[recursive]()
	check(err, "codec.recursive.Next*: codec.recursive contains itself")
	_, err = For[struct{ L []map[string]chan int }]()
	check(err, ".L[][]: chan int")
	_, err = For[map[string]func()]()
	check(err, "[]: func()")
	_, err = For[any]()
	check(err, "interface {}")
	_, err = For[complex64]()
	check(err, "complex64")
	_, err = For[struct{ Lock sync.Mutex }]()
	check(err, ".Lock._: unexported field")
	_, err = For[embedsTime]()
	check(err, "inherits")
	_, err = For[timestamppb.Timestamp]()
	check(err, "use a pointer")
	_, err = For[proto.Message]()
	check(err, "no pointer to a generated struct")
	_, err = For[struct {
		A int `codec:"x,id=z"`
	}]()
	check(err, "want name,id=NUMBER")
	_, err = For[struct {
		A int `codec:"x"`
		B int `codec:"x"`
	}]()
	check(err, `called "x"`)
	_, err = For[[1 << 31]int]()
	check(err, "too long")
	_, err = ForKey[struct{ P *int }]()
	check(err, ".P: *int in a key")
	_, err = ForKey[any]()
	check(err, "interface {}")
	_, err = ForKey[struct {
		A int `codec:"-"`
	}]()
	check(err, "left out of a key")
	_, err = ForKey[*timestamppb.Timestamp]()
	check(err, "in a key")
}

func TestMapsAreWrittenInOneOrder(t *testing.T) {
	t.Parallel()
	c := mustFor[map[string]int](t)
	var first []byte
	for i := range 50 {
		m := make(map[string]int)
		for j := range 40 {
			m[string(rune('a'+(i+j)%40))] = (i + j) % 40
		}
		b, err := c.Append(nil, &m)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if string(b) != string(first) {
			t.Fatal("two orders")
		}
	}
	var m map[string]int
	if err := c.Decode([]byte{3, 1, 'b', 2, 1, 'a', 2}, &m); !errors.Is(err, ErrCorrupt) {
		t.Errorf("keys out of order: %v", err)
	}
	if err := c.Decode([]byte{3, 1, 'a', 2, 1, 'a', 2}, &m); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a key twice: %v", err)
	}
}

func TestKeysAreEqualExactlyIfTheirBytesAre(t *testing.T) {
	t.Parallel()
	type key struct {
		F float64
		G float32
		S string
		N int16
	}
	c, err := ForKey[key]()
	if err != nil {
		t.Fatal(err)
	}
	encode := func(k key) string {
		b, err := c.Append(nil, &k)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	negative := math.Copysign(0, -1)
	if encode(key{F: negative, G: float32(negative)}) != encode(key{}) {
		t.Error("-0 is another key than +0")
	}
	nan := math.Float64frombits(0xfff8000000000001)
	if encode(key{F: nan, G: float32(nan)}) != encode(key{F: math.NaN(), G: float32(math.NaN())}) {
		t.Error("two NaNs are two keys")
	}
	gen := rapid.Custom(func(t *rapid.T) key {
		return key{rapid.SampledFrom([]float64{0, negative, 1, -1}).Draw(t, "f"), 0,
			rapid.StringN(0, 2, 4).Draw(t, "s"), rapid.Int16Range(-2, 2).Draw(t, "n")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if (a == b) != (encode(a) == encode(b)) {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

func TestDecodedStringsAndBytesAliasTheInput(t *testing.T) {
	t.Parallel()
	type record struct {
		S string
		B []byte
	}
	c := mustFor[record](t)
	v := record{"abc", []byte("def")}
	b, err := c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, 'x')
	var got record
	if err := c.Decode(b[:len(b)-1], &got); err != nil {
		t.Fatal(err)
	}
	_ = append(got.B, 'y') // must not write into the input
	if b[len(b)-1] != 'x' {
		t.Error("appending to a decoded slice writes into what follows")
	}
	b[1] = 'A'
	if got.S != "Abc" {
		t.Errorf("got %q: a copy", got.S)
	}
}

func TestLengthsAreBoundedByTheInput(t *testing.T) {
	t.Parallel()
	huge := binary.AppendUvarint(nil, 1<<40)
	list, wide, set, text, empty := mustFor[[]int64](t), mustFor[[][100]uint64](t), mustFor[map[int]string](t), mustFor[string](t), mustFor[[]struct{}](t)
	fails := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	fails("slice", list.Decode(huge, new([]int64)))
	fails("wide", wide.Decode(append([]byte{3}, make([]byte, 199)...), new([][100]uint64)))
	fails("map", set.Decode(huge, new(map[int]string)))
	fails("string", text.Decode(huge, new(string)))
	fails("empty", empty.Decode(huge, new([]struct{})))
	fails("skipped", mustFor[[]struct {
		A int `codec:"-"`
	}](t).Decode([]byte{200, 1}, new([]struct {
		A int `codec:"-"`
	})))
	fails("bool", mustFor[bool](t).Decode([]byte{2}, new(bool)))
	fails("pointer", mustFor[*int](t).Decode([]byte{2, 0}, new(*int)))
	fails("int16", mustFor[int16](t).Decode(binary.AppendVarint(nil, 1<<20), new(int16)))
	fails("uint32", mustFor[uint32](t).Decode(binary.AppendUvarint(nil, 1<<33), new(uint32)))
	fails("time", mustFor[time.Time](t).Decode(binary.AppendUvarint([]byte{0}, 1e9), new(time.Time)))
}

type failing struct{ N int }

func (f failing) AppendBinary(b []byte) ([]byte, error) {
	if f.N < 0 {
		return b, errors.New("negative")
	}
	return append(b, make([]byte, f.N)...), nil
}
func (f *failing) UnmarshalBinary(b []byte) error { f.N = len(b); return nil }

func TestOwnEncodingOfAnyLength(t *testing.T) {
	t.Parallel()
	c := mustFor[[2]failing](t)
	for _, n := range []int{0, 1, 127, 128, 129, 20000} {
		v := [2]failing{{n}, {1}}
		b, err := c.Append([]byte("before"), &v)
		if err != nil {
			t.Fatal(err)
		}
		var got [2]failing
		if err := c.Decode(b[6:], &got); err != nil || got != v {
			t.Errorf("%v became %v, %v", v, got, err)
		}
	}
	if _, err := c.Append(nil, &[2]failing{{0}, {-1}}); err == nil || err.Error() != "negative" {
		t.Errorf("error of an own encoding: %v", err)
	}
}
