package gate_test

import (
	"testing"

	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// BenchmarkLocalSegment is one published segment with one record through a queue within
// the process.
func BenchmarkLocalSegment(b *testing.B) {
	network := buffer.NewNetworkPool(16)
	pool, err := network.NewLocalPool(buffer.LocalOptions{Min: 2, Max: 8, Accounts: 1, PerAccount: 7})
	if err != nil {
		b.Fatal(err)
	}
	p := partition.New(partition.Options{Partitioning: partition.Forward, Subpartitions: 1, Pool: pool, EachRecord: true})
	g, err := gate.New(gate.Options{Channels: []gate.Channel{{}}, Wake: func() {}})
	if err != nil {
		b.Fatal(err)
	}
	g.AttachLocal(0, p.Subpartition(0))
	payload := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		p.Emit(0, wire.NoTimestamp, payload)
		item, ok, err := g.Poll()
		if err != nil || !ok {
			b.Fatal(ok, err)
		}
		item.Data.Release()
	}
	p.Close()
	g.Close()
}

// BenchmarkRemoteSegment is one segment from a connection.
func BenchmarkRemoteSegment(b *testing.B) {
	f := newFixture(b, 1, 0, 2, 1, 20)
	u := f.up[0]
	b.ReportAllocs()
	for b.Loop() {
		u.data(b, 100, 0)
		item, ok, err := f.Poll()
		if err != nil || !ok {
			b.Fatal(ok, err)
		}
		item.Data.Release()
	}
}
