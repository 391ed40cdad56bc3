package wire_test

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/weirflow/weir/netstack/wire"
)

// cutInColumns is cutAll with as many records as possible cut by Records.
func cutInColumns(keyed bool, base int64, views ...[]byte) (all []wire.Element, err error) {
	c := wire.Cutter{Keyed: keyed}
	var hash [3]uint64
	var timestamp [3]int64
	var payload [3][]byte
	for _, v := range views {
		c.Feed(v, base)
		for {
			n := c.Records(hash[:], timestamp[:], payload[:])
			for i := range n {
				kind := wire.KindTimedRecord
				if timestamp[i] == wire.NoTimestamp {
					kind = wire.KindRecord
				}
				all = append(all, wire.Element{Kind: kind, Timestamp: timestamp[i], Hash: hash[i], Payload: bytes.Clone(payload[i])})
			}
			if n == len(payload) {
				continue
			}
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

func TestRecordsCutsMostRecords(t *testing.T) {
	t.Parallel()
	var hash [9]uint64
	var timestamp [9]int64
	var payload [9][]byte
	for _, keyed := range []bool{false, true} {
		one := record(keyed, 7, 1000, 1005, "some bytes")
		long := record(keyed, 8, 1000, 1000+math.MaxInt32, string(make([]byte, 300)))
		c := wire.Cutter{Keyed: keyed}
		c.Feed(bytes.Join([][]byte{one, one, long, one, watermark(1000, 1), one}, nil), 1000)
		if n := c.Records(hash[:], timestamp[:], payload[:]); n != 4 || timestamp[2] != 1000+math.MaxInt32 || len(payload[2]) != 300 || keyed != (hash[2] == 8) {
			t.Errorf("keyed %v: %d records, %v, %v", keyed, n, timestamp, hash)
		}
		if cap(payload[0]) != len(payload[0]) {
			t.Error("a payload can be appended to")
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(sample(true, 50), 9, true)
	f.Add(sample(false, 50), 3, false)
	f.Fuzz(func(t *testing.T, b []byte, cut int, keyed bool) {
		views := [][]byte{b}
		if cut > 0 && cut < len(b) {
			views = [][]byte{b[:cut], b[cut:]}
		}
		want, wantErr := cutAll(keyed, 50, views...)
		got, err := cutInColumns(keyed, 50, views...)
		if (err == nil) != (wantErr == nil) || len(got) != len(want) {
			t.Fatalf("%d elements, %v; want %d, %v", len(got), err, len(want), wantErr)
		}
		for i := range got {
			if w := want[i]; w.Kind == wire.KindTimedRecord && w.Timestamp == wire.NoTimestamp {
				want[i].Kind = wire.KindRecord // columns do not tell them apart
			}
			if !bytes.Equal(got[i].Payload, want[i].Payload) {
				t.Fatalf("element %d: %+v, want %+v", i, got[i], want[i])
			}
			got[i].Payload, want[i].Payload = nil, nil
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("element %d: %+v, want %+v", i, got[i], want[i])
			}
		}
	})
}

// BenchmarkRecords cuts a segment of records of about 100 bytes.
func BenchmarkRecords(b *testing.B) {
	var segment []byte
	n := 0
	for ; len(segment) < wire.MaxPayload-200; n++ {
		segment = append(segment, record(true, uint64(n), 1000, 1000+int64(n), string(make([]byte, 94)))...)
	}
	var hash [64]uint64
	var timestamp [64]int64
	var payload [64][]byte
	for b.Loop() {
		c := wire.Cutter{Keyed: true}
		c.Feed(segment, 1000)
		for cut := 0; cut < n; {
			cut += c.Records(hash[:], timestamp[:], payload[:])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
}
