package netstack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/netstack/netstacktest"
	"github.com/weirflow/weir/netstack/partition"
)

// world holds every frame until the seed lets it arrive.
type world struct {
	rand *rand.Rand
	mu   struct {
		sync.Mutex
		held map[link.Pipe][]func()
	}
}

func (w *world) Carry(p link.Pipe, _ int, deliver func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.held[p] = append(w.mu.held[p], deliver)
}

func (w *world) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.mu.held) == 0
}

// step delivers the head of one pipe. It returns false if nothing is held.
func (w *world) step() bool {
	w.mu.Lock()
	var pipes []link.Pipe
	for p := range w.mu.held {
		pipes = append(pipes, p)
	}
	if len(pipes) == 0 {
		w.mu.Unlock()
		return false
	}
	slices.SortFunc(pipes, func(a, b link.Pipe) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
	p := pipes[w.rand.IntN(len(pipes))]
	deliver := w.mu.held[p][0]
	if w.mu.held[p] = w.mu.held[p][1:]; len(w.mu.held[p]) == 0 {
		delete(w.mu.held, p)
	}
	w.mu.Unlock()
	deliver()
	return true
}

// Whatever the order in which frames of different pipes arrive, nothing is lost,
// doubled or stuck; and after a cut each consumer learns that it lost a producer.
func TestAnyOrderOfDeliveries(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { live(t, seed) })
		})
	}
}

func live(t *testing.T, seed uint64) {
	w := &world{rand: rand.New(rand.NewPCG(seed, 1))}
	w.mu.held = make(map[link.Pipe][]func())
	x := &exchange{
		net:          netstacktest.New(t, 3, w, nil),
		partitioning: []partition.Partitioning{partition.Hash, partition.Rebalance}[seed%2],
		from:         vertex{0, []int{0, 1, 2}}, to: vertex{1, []int{0, 1, 2}},
		buffers: smallest,
	}
	x.buffers.Exclusive = int(seed / 2 % 3)
	x.buffers.Floating += int(seed / 4 % 3)
	const count = 600
	cutAt := -1
	if seed%3 == 0 {
		cutAt = w.rand.IntN(300)
	}
	g := group.New(context.Background(), "world")
	var consumers []*consumer
	var nodes []*node
	for j := range 3 {
		n := x.openConsumer(t, j)
		nodes = append(nodes, n)
		consumers = append(consumers, newConsumer(n, x.partitioning == partition.Hash))
	}
	for i := range 3 {
		nodes = append(nodes, x.openProducer(t, i))
	}
	for _, i := range w.rand.Perm(len(nodes)) {
		start(t, nodes[i])
	}
	errs := make([]error, 3)
	done := make(chan struct{}, 6)
	for i := range 3 {
		g.Go("producer", func(context.Context) error {
			produce(nodes[3+i], i, count, 300, count/5)
			done <- struct{}{}
			return nil
		})
		g.Go("consumer", func(ctx context.Context) error {
			errs[i] = consumers[i].run(ctx)
			nodes[i].Close()
			done <- struct{}{}
			return nil
		})
	}
	for step := 0; ; step++ {
		synctest.Wait()
		if step == cutAt {
			x.net.Memory.Cut("h0", "h1")
		}
		if !w.step() && len(done) == cap(done) {
			break
		}
		if step > 50_000 {
			t.Fatal("it does not end")
		}
		if w.idle() && len(done) < cap(done) {
			<-time.After(time.Millisecond) // only time can help: a buffer timeout, a dial
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		n.Close()
	}
	check(t, x, consumers, errs, cutAt >= 0, count)
}

func check(t *testing.T, x *exchange, consumers []*consumer, errs []error, cut bool, count int) {
	t.Helper()
	var seen []consumed
	failed := 0
	for i, c := range consumers {
		seen = append(seen, c.seen)
		if _, ok := errs[i].(*gate.PartitionLost); ok && cut {
			failed++
		} else if errs[i] != nil {
			t.Errorf("consumer %d: %v", i, errs[i])
		}
	}
	if !cut || failed == 0 {
		checkAll(t, x, seen, count)
	}
}
