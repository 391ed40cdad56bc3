package netstack_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/netstacktest"
	"github.com/weirflow/weir/netstack/partition"
)

var errCancelled = errors.New("cancelled by the test")

// TestCancelsNeverDeadlock (B54): tasks that exchange records over 64 channels, local and
// remote, with the smallest pools, are cancelled at any moment, again and again. All of them
// end, and no buffer is left. WEIR_CANCELS says how often; 5000 is what the report asks for.
func TestCancelsNeverDeadlock(t *testing.T) {
	t.Parallel()
	rounds, err := strconv.Atoi(os.Getenv("WEIR_CANCELS"))
	if err != nil {
		rounds = 60
	}
	net := netstacktest.New(t, 2, nil, func(_ int, o *netstack.Options) { o.Memory = 512 << 15 })
	x := &exchange{
		net: net, partitioning: partition.Hash, buffers: smallest,
		from: vertex{0, []int{0, 1, 0, 1, 0, 1, 0, 1}}, to: vertex{1, []int{0, 0, 0, 0, 1, 1, 1, 1}},
	}
	r := rand.New(rand.NewPCG(54, 1))
	for x.attempt = 1; x.attempt <= rounds; x.attempt++ {
		cancelOnce(t, x, time.Duration(r.IntN(3000))*time.Microsecond, r.IntN(16))
	}
	for i, used := range usedBuffers(net) {
		if used > 0 {
			t.Errorf("stack %d: %d buffers in use", i, used)
		}
	}
}

// cancelOnce runs the exchange for a while and cancels its tasks from one of them on, while
// the others run.
func cancelOnce(t *testing.T, x *exchange, after time.Duration, first int) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	g := group.New(ctx, "exchange")
	var nodes []*node
	for j := range x.to.on {
		n := x.openConsumer(t, j)
		nodes = append(nodes, n)
		g.Go("consumer", func(ctx context.Context) error { _ = newConsumer(n, true).run(ctx); return nil })
	}
	for i := range x.from.on {
		n := x.openProducer(t, i)
		nodes = append(nodes, n)
		g.Go("producer", func(ctx context.Context) error { emitUntil(ctx, n, i); return nil })
	}
	for _, n := range nodes {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(after)
	for k := range nodes {
		nodes[(first+k)%len(nodes)].Cancel(errCancelled)
	}
	cancel(errCancelled)
	if err := g.Wait(); err != nil && !errors.Is(err, errCancelled) {
		t.Fatal(err)
	}
	for k := range nodes {
		nodes[(first+k)%len(nodes)].Close()
	}
}

// emitUntil emits records of all sizes, without looking whether there is room, so that it is
// cancelled in the middle of one.
func emitUntil(ctx context.Context, n *node, i int) {
	payload := make([]byte, 100_000)
	for k := 0; ctx.Err() == nil; k++ {
		n.Outputs[0].Emit(hashOf(uint64(i)<<32|uint64(k)), int64(k), payload[:8+k*997%(len(payload)-8)])
	}
}
