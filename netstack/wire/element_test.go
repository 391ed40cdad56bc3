package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir/netstack/wire"
)

// record encodes one record.
func record(keyed bool, hash uint64, base, timestamp int64, payload string) []byte {
	b := make([]byte, wire.MaxElementHead+len(payload))
	n := wire.PutRecordHead(b, keyed, hash, base, timestamp, len(payload))
	return append(b[:n], payload...)
}

func watermark(base, w int64) []byte {
	b := make([]byte, wire.MaxElementHead)
	return b[:wire.PutWatermark(b, base, w)]
}

func status(k wire.Kind) []byte {
	b := make([]byte, 2)
	return b[:wire.PutStatus(b, k)]
}

// sample is one element of each kind.
func sample(keyed bool, base int64) []byte {
	return bytes.Join([][]byte{
		record(keyed, 0x0102030405060708, base, base+100, "abc"),
		record(keyed, math.MaxUint64, base, wire.NoTimestamp, ""),
		watermark(base, base-1),
		status(wire.KindIdle),
		status(wire.KindActive),
	}, nil)
}

// cutAll cuts views into elements, which share no memory with them.
func cutAll(keyed bool, base int64, views ...[]byte) (all []wire.Element, err error) {
	c := wire.Cutter{Keyed: keyed}
	for _, v := range views {
		c.Feed(v, base)
		for {
			var e wire.Element
			ok, err := c.Next(&e)
			if err != nil {
				return all, err
			}
			if !ok {
				break
			}
			e.Payload = bytes.Clone(e.Payload)
			all = append(all, e)
		}
	}
	return all, nil
}

func TestElementsHaveTheirGoldenBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"keyed, with timestamp", record(true, 0x0102030405060708, 1000, 1100, "abc"), "0e02c8010807060504030201616263"},
		{"with timestamp before the base", record(false, 9, 1000, 999, "abc"), "050201616263"},
		{"without timestamp", record(false, 0, 1000, wire.NoTimestamp, "a"), "020161"},
		{"keyed, without timestamp, empty", record(true, 1, 0, wire.NoTimestamp, ""), "09010100000000000000"},
		{"long", record(false, 0, 0, wire.NoTimestamp, string(make([]byte, 200)))[:4], "c9010100"},
		{"watermark", watermark(1000, 1000), "020300"},
		{"largest watermark", watermark(0, math.MaxInt64), "0b03feffffffffffffffff01"},
		{"smallest watermark", watermark(5, math.MinInt64), "0b03f6ffffffffffffffff01"},
		{"idle", status(wire.KindIdle), "0104"},
		{"active", status(wire.KindActive), "0105"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestEveryCutOfASampleGivesTheSameElements(t *testing.T) {
	t.Parallel()
	for _, keyed := range []bool{false, true} {
		b := sample(keyed, 50)
		want, err := cutAll(keyed, 50, b)
		if err != nil || len(want) != 5 {
			t.Fatalf("%v, %v", want, err)
		}
		if want[0].Timestamp != 150 || string(want[0].Payload) != "abc" || want[1].Timestamp != wire.NoTimestamp || want[2].Timestamp != 49 {
			t.Errorf("%+v", want)
		}
		for i := range b {
			for j := i; j <= len(b); j++ {
				got, err := cutAll(keyed, 50, b[:i], b[i:j], b[j:])
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("cut at %d and %d: %v, %v", i, j, got, err)
				}
			}
		}
	}
}

func TestMalformedElementsAreErrors(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]string{
		"no length":              "00",
		"length beyond bound":    "ffffffff0f",
		"endless length":         "ffffffffffffffffffff01",
		"kind 0":                 "0100",
		"unknown kind":           "0106",
		"record without hash":    "020161",
		"endless timestamp":      "0302ffff",
		"watermark with payload": "03030000",
		"status with payload":    "020400",
		"cleared memory":         "dbdbdbdbdbdbdbdbdbdb",
	} {
		raw, err := hex.DecodeString(b)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := cutAll(true, 0, raw); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A long record's memory grows with what arrives, not with what its length claims.
func TestClaimedLengthAllocatesNothing(t *testing.T) {
	var c wire.Cutter
	b := []byte{0xFF, 0xFF, 0xFF, 0x7F, 1} // 256 MiB
	got := testing.AllocsPerRun(10, func() {
		c = wire.Cutter{}
		c.Feed(b, 0)
		var e wire.Element
		if ok, err := c.Next(&e); ok || err != nil {
			t.Fatal(ok, err)
		}
	})
	begun, _, _, _ := c.Rest()
	if got > 1 || cap(begun) > 100_000 {
		t.Errorf("%v allocations, capacity %d", got, cap(begun))
	}
}

// Elements of any kind, encoded into segments of any size as a writer does it, come
// out as they went in.
func TestElementsSurviveSegments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keyed := rapid.Bool().Draw(t, "keyed")
		type segment struct {
			base int64
			b    []byte
		}
		var segments []segment
		size := rapid.IntRange(1, 60).Draw(t, "segment size")
		var want []wire.Element
		for range rapid.IntRange(0, 20).Draw(t, "elements") {
			e := wire.Element{Kind: wire.Kind(rapid.IntRange(1, 5).Draw(t, "kind")), Timestamp: wire.NoTimestamp}
			if e.Kind == wire.KindTimedRecord || e.Kind == wire.KindWatermark {
				e.Timestamp = rapid.Int64Min(math.MinInt64+1).Draw(t, "timestamp")
			}
			if e.Kind.IsRecord() {
				e.Payload = rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "payload")
				if keyed {
					e.Hash = rapid.Uint64().Draw(t, "hash")
				}
			}
			want = append(want, e)
			if n := len(segments); n == 0 || len(segments[n-1].b) == size {
				segments = append(segments, segment{base: rapid.Int64().Draw(t, "base")})
			}
			base := segments[len(segments)-1].base
			var b []byte
			switch {
			case e.Kind.IsRecord():
				b = record(keyed, e.Hash, base, e.Timestamp, string(e.Payload))
			case e.Kind == wire.KindWatermark:
				b = watermark(base, e.Timestamp)
			default:
				b = status(e.Kind)
			}
			for len(b) > 0 {
				last := &segments[len(segments)-1]
				n := min(len(b), size-len(last.b))
				last.b = append(last.b, b[:n]...)
				if b = b[n:]; len(b) > 0 {
					segments = append(segments, segment{base: rapid.Int64().Draw(t, "base")})
				}
			}
		}
		c := wire.Cutter{Keyed: keyed, Reuse: rapid.Bool().Draw(t, "reuse")}
		i := 0
		for _, s := range segments {
			c.Feed(s.b, s.base)
			for {
				var e wire.Element
				ok, err := c.Next(&e)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if w := want[i]; e.Kind != w.Kind || e.Timestamp != w.Timestamp || e.Hash != w.Hash || !bytes.Equal(e.Payload, w.Payload) {
					t.Fatalf("element %d: got %+v, want %+v", i, e, w)
				}
				i++
			}
		}
		if begun, _, left, _ := c.Rest(); i != len(want) || len(begun) > 0 || len(left) > 0 {
			t.Fatalf("%d elements of %d, rest %x %x", i, len(want), begun, left)
		}
	})
}

func TestCodingAllocatesNothing(t *testing.T) {
	b := make([]byte, 1000)
	payload := make([]byte, 100)
	c := wire.Cutter{Keyed: true, Reuse: true}
	var e wire.Element
	got := testing.AllocsPerRun(100, func() {
		n := wire.PutRecordHead(b, true, 1, 0, 5, len(payload))
		n += copy(b[n:], payload)
		for _, v := range [][]byte{b[:n], b[:n/2], b[n/2 : n]} {
			c.Feed(v, 0)
			for {
				if ok, err := c.Next(&e); err != nil {
					t.Fatal(err)
				} else if !ok {
					break
				}
			}
		}
		_ = wire.Buffer{Channel: 1, Sequence: 1 << 30, Type: wire.TypeData, Base: 1 << 40, Payload: 32000}.AppendHead(b[:0])
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkCut(b *testing.B) {
	one := record(true, 7, 0, 5, string(make([]byte, 100)))
	segment := bytes.Repeat(one, 32704/len(one))
	b.SetBytes(int64(len(segment)))
	b.ReportAllocs()
	var e wire.Element
	for b.Loop() {
		for rest := segment; len(rest) > 0; {
			n, err := wire.Cut(rest, 0, true, &e)
			if err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
	}
}

func TestKeyedHeadsAreRecordHeads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want, got [wire.MaxElementHead]byte
		size := rapid.SampledFrom([]int{0, 1, 115, 116, 117, 118, 119, 127, 128, 1 << 12, 8191, 8192, 16373, 16384, 1 << 20}).Draw(t, "size")
		delta := rapid.SampledFrom([]int64{0, 1, -1, 63, 64, -64, -65, 127, 8191, 8192, -8192, -8193, 1 << 40}).Draw(t, "delta")
		base, hash := rapid.Int64().Draw(t, "base"), rapid.Uint64().Draw(t, "hash")
		ts := base + delta
		if rapid.IntRange(0, 5).Draw(t, "timestamp") == 0 {
			ts = wire.NoTimestamp
		}
		n := wire.PutRecordHead(want[:], true, hash, base, ts, size)
		if k := wire.PutKeyedHead(&got, hash, base, ts, size); k != n || !bytes.Equal(got[:n], want[:n]) {
			t.Fatalf("%x, want %x", got[:k], want[:n])
		}
	})
}
