package netstack_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/netstacktest"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// TestLargeRecordsLeaveNoMemoryBehind (B61): records of 1 KiB to 64 MiB, in rising sizes, go
// through a local and a remote channel; when they are read, what lives on the heap is what
// did before, but for segments and what a channel keeps for its next long record.
func TestLargeRecordsLeaveNoMemoryBehind(t *testing.T) { // alone: it measures the heap
	net := netstacktest.New(t, 2, nil, nil)
	x := &exchange{
		net: net, partitioning: partition.Rebalance, buffers: netstack.DefaultBuffers(),
		from: vertex{0, []int{0}}, to: vertex{1, []int{0, 1}},
	}
	g := group.New(context.Background(), "exchange")
	var nodes []*node
	var consumers []*consumer
	for j := range x.to.on {
		c := newConsumer(x.openConsumer(t, j), false)
		nodes, consumers = append(nodes, c.node), append(consumers, c)
		g.Go("consumer", c.run)
	}
	producer := x.openProducer(t, 0)
	nodes = append(nodes, producer)
	for _, n := range nodes {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	payload, k := make([]byte, 64<<20), int64(0)
	emit := func(size int) { // one record to each consumer, whose number is its timestamp
		for range x.to.on {
			payload[0], payload[1] = byte(k), byte(k>>8)
			producer.Outputs[0].Emit(0, k, payload[:size])
			k++
		}
	}
	emit(1 << 10)
	before := heapBytes()
	for size := 1 << 10; size <= 64<<20; size *= 2 {
		emit(size)
	}
	emit(8) // so that the one before was read to its end
	producer.Outputs[0].BroadcastEvent(partition.NewEvent(wire.TypeEvent, wire.EndOfPartition{}))
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	const segments, kept = 64 * 32_768, 2 * 32 * wire.MaxPayload
	if after := heapBytes(); after > before+segments+kept+(1<<20) {
		t.Errorf("%d bytes live, %d before records of up to %d", after, before, len(payload))
	}
	runtime.KeepAlive(consumers) // what they hold counts until here
	for _, n := range nodes {
		n.Close()
	}
}

// heapBytes is how many bytes live on the heap.
func heapBytes() uint64 {
	runtime.GC()
	runtime.GC() // pools are emptied by the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
