package buffer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/buffer"
)

func local(t testing.TB, n *buffer.NetworkPool, o buffer.LocalOptions) *buffer.LocalPool {
	t.Helper()
	p, err := n.NewLocalPool(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// take requests n buffers.
func take(t testing.TB, p *buffer.LocalPool, n int) (all []*buffer.Buffer) {
	t.Helper()
	for i := range n {
		b := p.TryRequest(0)
		if b == nil {
			t.Fatalf("only %d of %d buffers", i, n)
		}
		all = append(all, b)
	}
	return all
}

func release(all []*buffer.Buffer) {
	for _, b := range all {
		b.Release()
	}
}

func TestDeploymentBeyondTheBudgetIsRefused(t *testing.T) {
	t.Parallel()
	n := buffer.NewNetworkPool(10)
	p := local(t, n, buffer.LocalOptions{Min: 7, Max: 100})
	_, err := n.NewLocalPool(buffer.LocalOptions{Min: 4, Max: 4})
	if !errors.Is(err, buffer.ErrInsufficientBuffers) || !strings.Contains(err.Error(), "want 4, have 3 of 10") {
		t.Errorf("got %v", err)
	}
	q := local(t, n, buffer.LocalOptions{Min: 3, Max: 3})
	p.Close()
	q.Close()
	if s := n.Stats(); s != (buffer.Stats{Total: 10}) {
		t.Errorf("%+v", s)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if _, err := n.NewLocalPool(buffer.LocalOptions{Min: 1, Max: 1}); !errors.Is(err, buffer.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestAPoolGrowsWithWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	n := buffer.NewNetworkPool(10)
	a := local(t, n, buffer.LocalOptions{Min: 2, Max: 6})
	b := local(t, n, buffer.LocalOptions{Min: 2, Max: 9})
	all := take(t, a, 6)
	if a.TryRequest(0) != nil {
		t.Error("more than the largest size")
	}
	more := take(t, b, 4)
	if b.TryRequest(0) != nil {
		t.Error("more than the budget")
	}
	release(all)
	more = append(more, take(t, b, 4)...)
	// Two are a's: b cannot have them.
	if b.TryRequest(0) != nil {
		t.Error("b got what was set aside for a")
	}
	release(more)
	a.Close()
	b.Close()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// A new pool whose buffers are lent out gets them as they come back, before anybody
// may borrow again.
func TestOwedBuffersComeFirst(t *testing.T) {
	t.Parallel()
	n := buffer.NewNetworkPool(6)
	a := local(t, n, buffer.LocalOptions{Min: 1, Max: 6})
	lent := take(t, a, 6)
	told := 0
	b := local(t, n, buffer.LocalOptions{Min: 3, Max: 5, Listener: func() { told++ }})
	if b.TryRequest(0) != nil {
		t.Fatal("all are lent")
	}
	for i := range 3 {
		lent[i].Release()
		if a.TryRequest(0) != nil {
			t.Fatal("a borrowed again what was owed to b")
		}
	}
	mine := take(t, b, 3)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	release(mine)
	release(lent[3:])
	a.Close()
	b.Close()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

func TestOverdraftIsBounded(t *testing.T) {
	t.Parallel()
	n := buffer.NewNetworkPool(10)
	p := local(t, n, buffer.LocalOptions{Min: 1, Max: 2, Overdraft: 2})
	all := take(t, p, 2)
	for range 2 {
		all = append(all, p.Overdraft(0))
	}
	if p.Overdraft(0) != nil || p.Available() {
		t.Error("overdraft is not bounded")
	}
	release(all[:2])
	if p.Available() {
		t.Error("available before the overdraft was paid back")
	}
	release(all[2:])
	if !p.Available() {
		t.Error("not available")
	}
	p.Close()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

func TestRequestWaitsUntilRecycledOrStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := buffer.NewNetworkPool(1)
		p := local(t, n, buffer.LocalOptions{Min: 1, Max: 1})
		stop := make(chan struct{})
		g := group.New(context.Background(), "requests")
		all := take(t, p, 1)
		got := make(chan *buffer.Buffer, 1)
		request := func() {
			g.Go("request", func(context.Context) error { got <- p.Request(0, stop); return nil })
			synctest.Wait()
			if len(got) != 0 {
				t.Fatal("did not wait")
			}
		}
		request()
		release(all)
		b := <-got
		request()
		close(stop)
		if c := <-got; c != nil {
			t.Error("got a buffer after stop")
		}
		stop = make(chan struct{})
		request()
		p.Close()
		if c := <-got; c != nil {
			t.Error("got a buffer of a closed pool")
		}
		if err := n.Close(); !errors.Is(err, buffer.ErrLeaked) {
			t.Errorf("got %v", err)
		}
		b.Release()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestViewsHoldWhatWasCommitted(t *testing.T) {
	t.Parallel()
	n := buffer.NewNetworkPool(1)
	p := local(t, n, buffer.LocalOptions{Min: 1, Max: 1})
	b := p.TryRequest(0)
	if len(b.Data()) != buffer.Capacity {
		t.Errorf("capacity %d", len(b.Data()))
	}
	b.SetBase(42)
	copy(b.Data(), "hello world")
	b.Commit(5)
	first := b.View(0, 5)
	b.Commit(11)
	rest := b.OwnFrom(5)
	if string(first.Bytes()) != "hello" || string(rest.Bytes()) != " world" || rest.Base() != 42 || rest.Len() != 6 {
		t.Errorf("%q %q", first.Bytes(), rest.Bytes())
	}
	kept := first.Bytes()
	first.Release()
	if p.TryRequest(0) != nil {
		t.Error("recycled while a view holds it")
	}
	rest.Release()
	if assert.Enabled && string(kept) == "hello" {
		t.Error("a recycled segment is not mangled")
	}
	if err := group.Catch(func() error { b.Release(); return nil }); err == nil {
		t.Error("a second release goes unnoticed")
	}
	buffer.View{}.Release()
	if w := buffer.Wrap([]byte("event")).Own(); string(w.Bytes()) != "event" {
		t.Errorf("%q", w.Bytes())
	}
	p.Close()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// Pools come and go, request and recycle; nothing is lost, and each pool that is
// settled can always have its smallest size.
func TestPoolsShareABudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 12).Draw(t, "total")
		n := buffer.NewNetworkPool(total)
		type pool struct {
			*buffer.LocalPool
			min, max int
			held     []*buffer.Buffer
		}
		var pools []*pool
		var orphans []*buffer.Buffer // of closed pools
		reserved := func() (sum int) {
			for _, p := range pools {
				sum += p.min
			}
			return sum + len(orphans)
		}
		pick := func(t *rapid.T) *pool {
			if len(pools) == 0 {
				return nil
			}
			return rapid.SampledFrom(pools).Draw(t, "pool")
		}
		t.Repeat(map[string]func(*rapid.T){
			"make": func(t *rapid.T) {
				p := &pool{min: rapid.IntRange(1, 4).Draw(t, "min")}
				p.max = p.min + rapid.IntRange(0, 4).Draw(t, "extra")
				l, err := n.NewLocalPool(buffer.LocalOptions{Min: p.min, Max: p.max})
				left := total - n.Stats().Reserved
				switch {
				case err == nil:
					p.LocalPool = l
					pools = append(pools, p)
				case p.min <= left:
					t.Fatalf("refused %d of %d", p.min, left)
				}
			},
			"request": func(t *rapid.T) {
				p := pick(t)
				if p == nil {
					return
				}
				b := p.TryRequest(0)
				if b == nil {
					return
				}
				if p.held = append(p.held, b); len(p.held) > p.max {
					t.Fatalf("%d buffers of at most %d", len(p.held), p.max)
				}
			},
			"recycle": func(t *rapid.T) {
				p := pick(t)
				if p == nil || len(p.held) == 0 {
					return
				}
				p.held[0].Release()
				p.held = p.held[1:]
			},
			"close": func(t *rapid.T) {
				p := pick(t)
				if p == nil {
					return
				}
				p.Close()
				orphans = append(orphans, p.held...)
				for i := range pools {
					if pools[i] == p {
						pools = append(pools[:i], pools[i+1:]...)
						break
					}
				}
			},
			"recycle orphan": func(t *rapid.T) {
				if len(orphans) == 0 {
					return
				}
				orphans[0].Release()
				orphans = orphans[1:]
			},
			"": func(t *rapid.T) {
				used := len(orphans)
				borrowed := 0
				for _, p := range pools {
					used += len(p.held)
					borrowed += max(0, len(p.held)-p.min)
				}
				if s := n.Stats(); s.Used != used || s.Reserved > reserved() {
					t.Fatalf("%+v, %d held, at most %d set aside", s, used, reserved())
				}
				if used > total {
					t.Fatalf("%d of %d", used, total)
				}
			},
		})
		release(orphans)
		for _, p := range pools {
			release(p.held)
		}
		for _, p := range pools { // each gets its smallest size
			p.held = nil
			for i := range p.min {
				b := p.TryRequest(0)
				if b == nil {
					t.Fatalf("buffer %d of %d set aside is not there", i, p.min)
				}
				p.held = append(p.held, b)
			}
		}
		for _, p := range pools {
			release(p.held)
			p.Close()
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkRequestAndRecycle(b *testing.B) {
	n := buffer.NewNetworkPool(4)
	p := local(b, n, buffer.LocalOptions{Min: 2, Max: 4})
	b.ReportAllocs()
	for b.Loop() {
		p.TryRequest(0).Release()
	}
}

// TestWhatExceedsAPoolIsBoundedAndGoesAway: a Request that waits and may exceed its pool
// gets memory that is not the NetworkPool's, up to a bound, and nobody uses it again.
func TestWhatExceedsAPoolIsBoundedAndGoesAway(t *testing.T) {
	t.Parallel()
	n := buffer.NewNetworkPool(2)
	may := false
	p, err := n.NewLocalPool(buffer.LocalOptions{Min: 1, Max: 2, Exceeds: func() bool { return may }})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	var held []*buffer.Buffer
	for b := p.Request(0, stop); b != nil; b = p.Request(0, stop) {
		if held = append(held, b); b.Excess() {
			t.Fatalf("buffer %d exceeds the pool", len(held))
		}
	}
	may = true
	const record = 256 << 20
	for range record/buffer.Capacity + 1 {
		b := p.Request(0, stop)
		if b == nil || !b.Excess() {
			t.Fatalf("after %d buffers of 2 there is %v, and a record of %d bytes is not ended", len(held), b, record)
		}
		held = append(held, b)
	}
	for b := p.Request(0, stop); b != nil; b = p.Request(0, stop) {
		if held = append(held, b); len(held) > record/buffer.Capacity+100 {
			t.Fatalf("%d buffers of 2, and no end", len(held))
		}
	}
	if s := n.Stats(); s.Used != len(held) || s.Excess != len(held)-2 {
		t.Errorf("%d in use, %d beyond the budget, of %d", s.Used, s.Excess, len(held))
	}
	p.Close()
	for _, b := range held {
		b.Release()
	}
	if s := n.Stats(); s.Used != 0 || s.Excess != 0 {
		t.Errorf("%d in use, %d beyond the budget, when all came back", s.Used, s.Excess)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
