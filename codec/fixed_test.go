package codec

import (
	"encoding/hex"
	"errors"
	"testing"
	"time"
)

type padded struct {
	A bool
	B int64
	C uint16
	D [2]struct {
		X int8
		Y float32
	}
	E time.Duration
	F [3]byte
}

func TestFixedFormIsPackedAndLittleEndian(t *testing.T) {
	t.Parallel()
	c := mustFor[padded](t)
	v := padded{A: true, B: 0x0102030405060708, C: 0x1122, E: 1, F: [3]byte{7, 8, 9}}
	v.D[0].X, v.D[0].Y, v.D[1].X, v.D[1].Y = 1, 1, -1, 2
	const want = "01" + "0807060504030201" + "2211" + "01" + "0000803f" + "ff" + "00000040" + "0100000000000000" + "070809"
	if c.FixedSize() != len(want)/2 {
		t.Fatalf("size %d, want %d", c.FixedSize(), len(want)/2)
	}
	b := make([]byte, c.FixedSize())
	c.PutFixed(b, &v)
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var got padded
	if err := c.GetFixed(b, &got); err != nil || got != v {
		t.Errorf("%+v, %v", got, err)
	}
	b[0] = 2
	if err := c.GetFixed(b, &got); !errors.Is(err, ErrCorrupt) {
		t.Errorf("boolean 2: %v", err)
	}
	if err := c.GetFixed(b[1:], &got); !errors.Is(err, ErrCorrupt) {
		t.Errorf("short: %v", err)
	}
	if c.FixedSchema() != "fixed 32 "+c.Schema() {
		t.Error(c.FixedSchema())
	}
}

func TestOnlySmallPointerFreeTypesAreFixed(t *testing.T) {
	t.Parallel()
	for name, got := range map[string]int{
		"string": mustFor[string](t).FixedSize(),
		"time":   mustFor[time.Time](t).FixedSize(),
		"slice":  mustFor[[2][]int](t).FixedSize(),
		"own":    mustFor[failing](t).FixedSize(),
		"large":  mustFor[[513]int64](t).FixedSize(),
		"empty":  mustFor[struct{}](t).FixedSize(),
	} {
		if got != 0 {
			t.Errorf("%s: %d", name, got)
		}
	}
	if got := mustFor[[512]int64](t).FixedSize(); got != 4096 {
		t.Errorf("largest: %d", got)
	}
}
