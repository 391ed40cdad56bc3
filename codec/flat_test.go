package codec

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type flatInner struct {
	At    time.Time
	Raw   [5]byte
	Bytes []byte
	F     float32
}

type flatOuter struct {
	First  string
	Second string
	I      int
	U      uint64
	Inner  flatInner
	I32    int32
	U32    uint32
	I16    int16
	U16    uint16
	B      bool
	F      float64
	Last   string
}

// flatText draws texts of lengths around those that are treated differently.
func flatText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.SampledFrom([]int{0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 76, 126, 127, 128, 129, 300}).Draw(t, "length")
		return string(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "text"))
	})
}

// sameAsAppend writes a value into a place between others.
func sameAsAppend[T any](t rapid.TB, c *Codec[T], v T) {
	t.Helper()
	want, err := c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	value := c.Value(&v)
	if value.Size() != len(want) {
		t.Fatalf("%+v: size %d, want %d", v, value.Size(), len(want))
	}
	room := bytes.Repeat([]byte{0xA5}, len(want)+128)
	value.Put(room[64 : 64+len(want) : 64+len(want)])
	if !bytes.Equal(room[64:64+len(want)], want) {
		t.Fatalf("%+v: %x, want %x", v, room[64:64+len(want)], want)
	}
	for i, b := range room {
		if (i < 64 || i >= 64+len(want)) && b != 0xA5 {
			t.Fatalf("%+v: byte %d around it was written", v, i-64)
		}
	}
}

func TestFlatValuesArePutAsTheyAreAppended(t *testing.T) {
	t.Parallel()
	c, texts := mustFor[flatOuter](t), mustFor[struct{ A, B, C string }](t)
	if !c.Flat() || !texts.Flat() {
		t.Fatal("not flat")
	}
	rapid.Check(t, func(t *rapid.T) {
		text := flatText()
		v := flatOuter{
			First: text.Draw(t, "first"), Second: text.Draw(t, "second"), Last: text.Draw(t, "last"),
			I: rapid.Int().Draw(t, "int"), U: rapid.Uint64().Draw(t, "uint64"),
			I32: rapid.Int32().Draw(t, "int32"), U32: rapid.Uint32().Draw(t, "uint32"),
			I16: rapid.Int16().Draw(t, "int16"), U16: rapid.Uint16().Draw(t, "uint16"),
			B: rapid.Bool().Draw(t, "bool"), F: rapid.Float64().Draw(t, "float64"),
		}
		v.Inner.At = time.Unix(rapid.Int64().Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		v.Inner.F = rapid.Float32().Draw(t, "float32")
		if rapid.Bool().Draw(t, "not nil") {
			v.Inner.Bytes = []byte(text.Draw(t, "bytes"))
		}
		sameAsAppend(t, c, v)
		sameAsAppend(t, texts, struct{ A, B, C string }{v.First, v.Second, v.Last})
	})
}

func TestKeysAreFlatToo(t *testing.T) {
	t.Parallel()
	type key struct {
		Name string
		F    float64
		G    float32
	}
	c, err := ForKey[key]()
	if err != nil {
		t.Fatal(err)
	}
	negative := 0.0
	negative *= -1
	sameAsAppend(t, c, key{"a key", negative, float32(negative)})
}

func TestWhatFollowsPointersIsNotFlat(t *testing.T) {
	t.Parallel()
	if mustFor[outerLocal](t).Flat() || mustFor[withMap](t).Flat() || mustFor[struct{ P *int }](t).Flat() {
		t.Error("flat")
	}
}

func TestPutKeepsTheValueOnTheStack(t *testing.T) {
	c := mustFor[flatOuter](t)
	b := make([]byte, 1024)
	n := 0
	if allocs := testing.AllocsPerRun(100, func() {
		v := flatOuter{First: "on the stack", I: n}
		value := c.Value(&v)
		n += value.Size()
		value.Put(b[:value.Size()])
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestAPlaceOfAnotherSizeIsRefused(t *testing.T) {
	t.Parallel()
	c := mustFor[struct{ A, B string }](t)
	v := struct{ A, B string }{"sixteen letters.", "more"}
	for _, d := range []int{-18, -5, -1, 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("size %+d: put", d)
				}
			}()
			value := c.Value(&v)
			value.Put(make([]byte, value.Size()+d))
		}()
	}
}
