package codec

import "testing"

func orderBytes(t testing.TB) (*Codec[Order], *Order, []byte) {
	c := mustFor[Order](t)
	v := &Order{"order-0000000001", "user-00000001", 12.5, 1700000000000, "de"}
	b, err := c.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return c, v, b
}

func TestPlainRecordsAreCodedWithoutAllocation(t *testing.T) {
	c, v, b := orderBytes(t)
	var out Order
	buf := make([]byte, 0, 128)
	n := testing.AllocsPerRun(100, func() {
		if _, err := c.Append(buf, v); err != nil {
			t.Fatal(err)
		}
		if err := c.Decode(b, &out); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	c, v, buf := orderBytes(b)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = c.Append(buf[:0], v)
	}
}

func BenchmarkDecode(b *testing.B) {
	c, _, buf := orderBytes(b)
	var out Order
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Decode(buf, &out); err != nil {
			b.Fatal(err)
		}
	}
}
