package partition_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

type named struct {
	Name string
	N    int
}

func codecOf[T any](t testing.TB) *codec.Codec[T] {
	t.Helper()
	c, err := codec.For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// taken polls all segments of a subpartition.
func (f *fixture) taken(i int) (bases []int64, data [][]byte) {
	for {
		p, outcome := f.Subpartition(i).Poll(true)
		if outcome != partition.Found {
			return bases, data
		}
		bases, data = append(bases, p.Data.Base()), append(data, bytes.Clone(p.Data.Bytes()))
		p.Data.Release()
	}
}

func TestAppendedRecordsAreAsEmitted(t *testing.T) {
	t.Parallel()
	c := codecOf[named](t)
	rapid.Check(t, func(rt *rapid.T) {
		o := partition.Options{Partitioning: partition.Hash, Subpartitions: 3, MaxParallelism: 128}
		emitted, appended := newFixture(t, o, 21, 0), newFixture(t, o, 21, 0)
		defer emitted.Close()
		defer appended.Close()
		size := rapid.SampledFrom([]int{32704, 4096, 500}).Draw(rt, "segments of")
		for i := range o.Subpartitions {
			emitted.Subpartition(i).SetBufferSize(size)
			appended.Subpartition(i).SetBufferSize(size)
		}
		a, direct := appended.Appender(), 0
		at := rapid.Int64Range(-1<<40, 1<<40).Draw(rt, "start")
		for range rapid.IntRange(1, 150).Draw(rt, "records") {
			hash := rapid.Uint64().Draw(rt, "hash")
			v := named{strings.Repeat("x", rapid.IntRange(0, 200).Draw(rt, "length")), rapid.Int().Draw(rt, "number")}
			at += rapid.SampledFrom([]int64{0, 1, 60, 70, -200, 9000, 1 << 33}).Draw(rt, "step")
			ts := at
			if rapid.IntRange(0, 9).Draw(rt, "timestamp") == 0 {
				ts = wire.NoTimestamp
			}
			payload, err := c.Append(nil, &v)
			if err != nil {
				rt.Fatal(err)
			}
			emitted.Emit(hash, ts, payload)
			if a.Append(hash, ts, c.Value(&v)) {
				direct++
			} else {
				appended.Emit(hash, ts, payload)
			}
			if rapid.IntRange(0, 19).Draw(rt, "flush") == 0 {
				emitted.FlushAll()
				appended.FlushAll()
				for i := range o.Subpartitions {
					sameSegments(rt, emitted, appended, i)
				}
			}
		}
		emitted.FlushAll()
		appended.FlushAll()
		for i := range o.Subpartitions {
			sameSegments(rt, emitted, appended, i)
		}
		if emitted.Records() != appended.Records() || emitted.Bytes() != appended.Bytes() {
			rt.Errorf("counted %d, %d; want %d, %d", appended.Records(), appended.Bytes(), emitted.Records(), emitted.Bytes())
		}
		if size == 32704 && appended.Records() > 60 && direct == 0 {
			rt.Error("nothing was appended")
		}
	})
}

func sameSegments(t *rapid.T, want, got *fixture, i int) {
	wantBases, wantData := want.taken(i)
	bases, data := got.taken(i)
	if len(data) != len(wantData) {
		t.Fatalf("%d segments, want %d", len(data), len(wantData))
	}
	for k := range data {
		if bases[k] != wantBases[k] || !bytes.Equal(data[k], wantData[k]) {
			t.Fatalf("segment of base %d: %x\nwant base %d: %x", bases[k], data[k], wantBases[k], wantData[k])
		}
	}
}

func TestAppendTakesNothingWhenItMustBeLookedAfter(t *testing.T) {
	t.Parallel()
	c := codecOf[named](t)
	f := newFixture(t, partition.Options{Partitioning: partition.Hash, Subpartitions: 1, MaxParallelism: 128}, 2, 0)
	v := named{"x", 1}
	append1 := func() bool { return f.Appender().Append(1, 5, c.Value(&v)) }
	if append1() {
		t.Error("appended without a segment")
	}
	f.Emit(1, 5, []byte("r"))
	if !append1() {
		t.Error("refused with a segment")
	}
	f.RequestFlush()
	if append1() {
		t.Error("appended in front of a flush")
	}
	f.FlushIfRequested()
	if !append1() {
		t.Error("refused after the flush")
	}
	f.BroadcastEvent(partition.NewEvent(wire.TypeEvent, wire.EndOfData{}))
	if append1() {
		t.Error("appended behind an event without a segment")
	}
	f.Fail(partition.ErrClosed)
	f.Emit(1, 5, []byte("dropped"))
	if append1() {
		t.Error("appended after the end")
	}
}

func TestOnlyKeyedOutputsHaveAnAppender(t *testing.T) {
	t.Parallel()
	for _, o := range []partition.Options{
		{Partitioning: partition.Forward, Subpartitions: 1},
		{Partitioning: partition.Rebalance, Subpartitions: 2},
		{Partitioning: partition.Broadcast, Subpartitions: 2},
		{Partitioning: partition.Custom, Subpartitions: 2},
		{Partitioning: partition.Hash, Subpartitions: 2, MaxParallelism: 128, EachRecord: true},
	} {
		if newFixture(t, o, 2, 0).Appender() != nil {
			t.Errorf("%v, each record %v: an appender", o.Partitioning, o.EachRecord)
		}
	}
}
