package codec

import (
	"bytes"
	"testing"
	"time"
)

type innerLocal struct {
	At   time.Time
	Rest [2]struct{ A, B int32 }
}

type outerLocal struct {
	Name  string
	List  []innerLocal
	Inner [3]innerLocal
	Ref   *innerLocal
	Raw   [4]byte
}

type withMap struct {
	N int
	M [1]map[string]int
}

func TestValuesOnTheStackAreEncodedAlike(t *testing.T) {
	t.Parallel()
	c, m := mustFor[outerLocal](t), mustFor[withMap](t)
	if !c.Local() || m.Local() {
		t.Errorf("local: %v, %v", c.Local(), m.Local())
	}
	v := outerLocal{Name: "n", List: make([]innerLocal, 2), Ref: &innerLocal{At: time.Unix(5, 6)}, Raw: [4]byte{1, 2, 3, 4}}
	v.Inner[1].Rest[1].B = -7
	w := withMap{N: 3, M: [1]map[string]int{{"a": 1, "b": 2}}}
	sameBytes(t, c, v)
	sameBytes(t, m, w)
}

func sameBytes[T any](t *testing.T, c *Codec[T], v T) {
	t.Helper()
	want, err := c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.AppendLocal(nil, &v); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%+v: %x, %v; want %x", v, got, err, want)
	}
}

func TestAppendLocalKeepsTheValueOnTheStack(t *testing.T) {
	c := mustFor[outerLocal](t)
	b := make([]byte, 0, 1024)
	n := 0
	if allocs := testing.AllocsPerRun(100, func() {
		v := outerLocal{Name: "on the stack"}
		v.Raw[0] = byte(n)
		b, _ = c.AppendLocal(b[:0], &v)
		n += len(b)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
