package heap

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir/internal/assert"
)

// ledger is what the task's goroutine and those of its snapshots share: which
// snapshots are outstanding, and who still needs a page that the table gave up.
//
// Epochs number the snapshots. A page of birth b is captured by exactly the
// snapshots s > b that were taken while the table had it. So a page may be
// written in place if the newest outstanding snapshot is not younger than the
// page; and a page that the table gave up is needed as long as an outstanding
// snapshot is. Its count of references is that number of snapshots; instead of
// counting, the page waits with the newest of them, and goes on to the next older
// one that holds it when that is released.
//
// Why the task may write in place after a release: 1. the snapshot's goroutine
// reads the page; 2. it releases, which stores fence; 3. the task loads fence
// and then writes. The load sees the store or, if it came too early, an older
// value, and then the task makes a copy that nobody needed.
type ledger struct {
	pool *PagePool

	// fence is the newest outstanding snapshot, or 0. Pages and directories whose
	// birth is smaller must not be written.
	fence atomic.Uint32

	mu struct {
		sync.Mutex
		open []*Snapshot // outstanding, by epoch
	}
}

// open adds a snapshot that has been captured.
func (l *ledger) open(s *Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.open = append(l.mu.open, s)
	l.fence.Store(s.epoch)
}

// retire takes over a page that the table has replaced.
func (l *ledger) retire(r pageRef) {
	l.mu.Lock()
	needed := l.keepLocked(r)
	l.mu.Unlock()
	if !needed {
		l.free(r)
	}
}

// keepLocked lets the newest outstanding snapshot that holds the page keep it.
func (l *ledger) keepLocked(r pageRef) bool {
	n := len(l.mu.open)
	if n == 0 || l.mu.open[n-1].epoch <= r.birth {
		return false
	}
	l.mu.open[n-1].retired = append(l.mu.open[n-1].retired, r)
	return true
}

// close removes a snapshot that is released and frees what only it held.
func (l *ledger) close(s *Snapshot) {
	for _, r := range l.closeLocking(s) {
		l.free(r)
	}
}

func (l *ledger) closeLocking(s *Snapshot) (unneeded []pageRef) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.mu.open, s)
	assert.That(i >= 0, "heap: snapshot %d is not outstanding", s.epoch)
	l.mu.open = slices.Delete(l.mu.open, i, i+1)
	newest := uint32(0)
	if n := len(l.mu.open); n > 0 {
		newest = l.mu.open[n-1].epoch
	}
	l.fence.Store(newest)
	unneeded = s.retired[:0]
	for _, r := range s.retired {
		if i > 0 && l.mu.open[i-1].epoch > r.birth {
			l.mu.open[i-1].retired = append(l.mu.open[i-1].retired, r)
		} else {
			unneeded = append(unneeded, r)
		}
	}
	s.retired = nil
	return unneeded
}

func (l *ledger) free(r pageRef) {
	if r.units > 1 {
		l.pool.giveLarge(r.p, int(r.units))
		return
	}
	one := [1]*page{r.p}
	l.pool.give(one[:])
}
