package heap

import (
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

// A replaced page goes back as soon as the last snapshot that holds it is
// released, not later: snapshots 1 to 3 are taken, with a change before each.
func TestReplacedPageWaitsForItsSnapshotsOnly(t *testing.T) {
	t.Parallel()
	b := newTestBackend(t, NewPagePool(1<<20), 1, weir.KeyGroupRange{})
	tab := tableOf(t, b, "n", 8)
	var s [4]*Snapshot
	for i := 1; i <= 3; i++ {
		tab.Slot(refOf("a", ""), statebackend.Hint{})
		snap, err := b.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		s[i] = snap.(*Snapshot)
	}
	tab.Slot(refOf("a", ""), statebackend.Hint{})
	waiting := func(want ...int) {
		t.Helper()
		b.led.mu.Lock()
		defer b.led.mu.Unlock()
		for i, n := range want {
			if got := len(s[i+1].retired); got != n {
				t.Errorf("%d pages wait with snapshot %d, want %d", got, i+1, n)
			}
		}
	}
	waiting(1, 1, 1)
	s[2].Release() // its page is younger than snapshot 1
	waiting(1, 0, 1)
	s[3].Release()
	waiting(1, 0, 0)
	s[1].Release()
	waiting(0, 0, 0)

	// One page held by two goes on to the older one.
	first, _ := b.Snapshot()
	second, _ := b.Snapshot()
	s[1], s[2] = first.(*Snapshot), second.(*Snapshot)
	tab.Slot(refOf("a", ""), statebackend.Hint{})
	waiting(0, 1)
	s[2].Release()
	waiting(1, 0)
	tab.Slot(refOf("a", ""), statebackend.Hint{}) // its own again
	waiting(1, 0)
	s[1].Release()
	waiting(0, 0)
}

// A page that was born after the newest snapshot is no snapshot's.
func TestPageOfNoSnapshotIsFreedAtOnce(t *testing.T) {
	t.Parallel()
	pool := NewPagePool(1 << 20)
	b := newTestBackend(t, pool, 1, weir.KeyGroupRange{})
	snap, _ := b.Snapshot()
	p := pool.take(nil, 1)
	before := pool.Stats()
	b.led.retire(pageRef{p: p[0], birth: b.epoch, units: 1})
	if after := pool.Stats(); after.InUse != before.InUse-1 {
		t.Errorf("%v, before %v", after, before)
	}
	snap.Release()
}

func TestPoolIsBounded(t *testing.T) {
	t.Parallel()
	pool := NewPagePool(3 * pageSize)
	var pages []*page
	for range 5 {
		pages = pool.take(pages, 1)
	}
	pool.give(pages)
	if st := pool.Stats(); st != (PoolStats{Idle: 3, Fresh: 5}) {
		t.Errorf("got %v", st)
	}
	if got := pool.take(nil, 10); len(got) != 3 {
		t.Errorf("%d pages, want the 3 idle ones", len(got))
	} else {
		pool.give(got)
	}
}
