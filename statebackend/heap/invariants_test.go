//go:build invariants

package heap

import (
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

// The checks that invariant builds make must be able to fail.
func TestInvariantBuildsFindMisuse(t *testing.T) {
	t.Parallel()
	panics := func(what string, call func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		call()
	}
	pool := NewPagePool(1 << 20)
	pages := pool.take(pool.take(nil, 1), 1)
	pool.give(pages[:1])
	panics("given twice", func() { pool.give(pages[:1]) })
	pages[0].b[100] = 1
	panics("written while idle", func() { pool.take(nil, 1) })

	b := newTestBackend(t, NewPagePool(1<<20), 1, weir.KeyGroupRange{})
	tab := tableOf(t, b, "n", 8)
	tab.Slot(refOf("a", ""), statebackend.Hint{})
	tab.groups[0].dead++
	panics("wrong count", b.check)
	tab.groups[0].dead--
	b.check()
}
