package heap

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

var all128 = weir.KeyGroupRange{First: 0, Last: 127}

// Timers of one key must not stand in one probe chain.
func TestNamespacesOfOneKeySpread(t *testing.T) {
	t.Parallel()
	b := newTestBackend(t, NewPagePool(1<<20), 128, all128)
	tab := tableOf(t, b, "timers", 1)
	ref := refOf("the one key", "")
	const n = 10_000
	for i := range n {
		ref.Namespace = binary.BigEndian.AppendUint64(ref.Namespace[:0], uint64(1_700_000_000_000+i))
		tab.Slot(ref, statebackend.Hint{})
	}
	probes := 0
	ix := &tab.group(ref.Hash).first
	for i, s := range ix.slots {
		if s != 0 {
			probes += int((uint32(i)-uint32(s>>32))&ix.mask) + 1
		}
	}
	if mean := float64(probes) / n; mean > 3 {
		t.Errorf("%.1f probes for an entry, want at most 3", mean)
	}
}

func TestMixedTagsAreSpreadInAllBits(t *testing.T) {
	t.Parallel()
	const n = 1 << 14
	var ones [32]int
	seen := make(map[uint32]bool, n)
	for i := range n {
		tag := slotTag(7, binary.BigEndian.AppendUint64(nil, uint64(i)))
		seen[tag] = true
		for bit := range ones {
			ones[bit] += int(tag >> bit & 1)
		}
	}
	for bit, count := range ones {
		if count < n*45/100 || count > n*55/100 {
			t.Errorf("bit %d is set in %d of %d", bit, count, n)
		}
	}
	if len(seen) < n-5 {
		t.Errorf("%d different tags of %d", len(seen), n)
	}
	if slotTag(7, nil) != 7 || slotTag(7, []byte{0}) == slotTag(7, []byte{0, 0}) {
		t.Error("the tag of no namespace is the key's; lengths tell apart")
	}
}

func TestIndicesSplitSoThatRehashesAreShort(t *testing.T) {
	t.Parallel()
	b := newTestBackend(t, NewPagePool(1<<20), 1, weir.KeyGroupRange{})
	tab := tableOf(t, b, "n", 8)
	key := make([]byte, 8)
	const n = 600_000
	for i := range n {
		binary.LittleEndian.PutUint64(key, uint64(i))
		tab.Slot(statebackend.Ref{Hash: xxh3.Hash(key), Key: key}, statebackend.Hint{})
	}
	g := &tab.groups[0]
	if len(g.shards) < 8 {
		t.Errorf("%d indices for %d entries", len(g.shards), n)
	}
	for _, ix := range g.shards {
		if ix.n > maxEntries || len(ix.slots) > maxSlots {
			t.Errorf("an index has %d entries in %d slots", ix.n, len(ix.slots))
		}
	}
}

// Tags that agree in their high bits cannot be told apart by splitting.
func TestIndexOfChosenTagsGrows(t *testing.T) {
	t.Parallel()
	b := newTestBackend(t, NewPagePool(1<<20), 1, weir.KeyGroupRange{})
	tab := tableOf(t, b, "n", 4)
	const n = maxEntries + 1000
	for i := range n {
		key := binary.LittleEndian.AppendUint32(nil, uint32(i))
		v, _ := tab.Slot(statebackend.Ref{Hash: uint64(i) & 0x1ffff, Key: key}, statebackend.Hint{})
		copy(v, key)
	}
	for i := range n {
		key := binary.LittleEndian.AppendUint32(nil, uint32(i))
		if v, ok := tab.Get(statebackend.Ref{Hash: uint64(i) & 0x1ffff, Key: key}, statebackend.Hint{}); !ok || string(v) != string(key) {
			t.Fatalf("key %d: %v, %v", i, v, ok)
		}
	}
	if depth := 32 - tab.groups[0].shift; depth != maxDepth {
		t.Errorf("depth %d, want %d", depth, maxDepth)
	}
}

// Of ten entries nine are deleted at once: pages must not stay a tenth full.
func TestSparsePagesAreMovedTogether(t *testing.T) {
	t.Parallel()
	b := newTestBackend(t, NewPagePool(1<<20), 1, weir.KeyGroupRange{})
	tab := tableOf(t, b, "n", 8)
	const n = 20_000
	for i := range n {
		for j := range 10 {
			tab.Slot(refOf(fmt.Sprintf("%d/%d", i, j), ""), statebackend.Hint{})
		}
		for j := range 9 {
			if !tab.Delete(refOf(fmt.Sprintf("%d/%d", i, j), "")) {
				t.Fatalf("%d/%d is not there", i, j)
			}
		}
	}
	live := n * tab.lay.size(len("12345/9"), 0, 0)
	if pages := tab.groups[0].pages; pages*pageRoom > 2*live+4*pageSize {
		t.Errorf("%d pages for %d live bytes", pages, live)
	}
	if st := b.Stats(); st.DeadBytes > int64(live) {
		t.Errorf("%d dead bytes beside %d live ones", st.DeadBytes, live)
	}
	for i := range n {
		if _, ok := tab.Get(refOf(fmt.Sprintf("%d/9", i), ""), statebackend.Hint{}); !ok {
			t.Fatalf("%d/9 is gone", i)
		}
	}
}

func TestForeignKeysAndOversizeNamesPanic(t *testing.T) {
	t.Parallel()
	b := newTestBackend(t, NewPagePool(1<<20), 128, weir.KeyGroupRange{First: 10, Last: 19})
	tab, text := tableOf(t, b, "n", 8), tableOf(t, b, "text", 0)
	inside := uint64(15) << 57
	for name, call := range map[string]func(){
		"key group below": func() { tab.Get(statebackend.Ref{Hash: 9 << 57}, statebackend.Hint{}) },
		"key group above": func() { tab.Get(statebackend.Ref{Hash: 20 << 57}, statebackend.Hint{}) },
		"long key": func() {
			tab.Get(statebackend.Ref{Hash: inside, Key: make([]byte, statebackend.MaxKeyBytes+1)}, statebackend.Hint{})
		},
		"long namespace": func() {
			tab.Delete(statebackend.Ref{Hash: inside, Namespace: make([]byte, statebackend.MaxNamespaceBytes+1)})
		},
		"value of bad size": func() { tab.Put(statebackend.Ref{Hash: inside}, statebackend.Hint{}, make([]byte, 7)) },
		"slot of variable":  func() { text.Slot(statebackend.Ref{Hash: inside}, statebackend.Hint{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func TestVersionIsNeverZero(t *testing.T) {
	t.Parallel()
	b := newTestBackend(t, NewPagePool(1<<20), 1, weir.KeyGroupRange{})
	tab := tableOf(t, b, "n", 8)
	tab.version = ^uint32(0)
	tab.Slot(refOf("a", ""), statebackend.Hint{}) // the first entry makes an index
	if tab.version == 0 {
		t.Error("version 0 is the zero hint's")
	}
}

// The per-record path allocates nothing once the table has its size.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	b := newTestBackend(t, NewPagePool(64<<20), 128, all128)
	fixed, text := tableOf(t, b, "fixed", 16), tableOf(t, b, "text", 0)
	const n = 4096
	refs := make([]statebackend.Ref, n)
	hashes := make([]uint64, n)
	for i := range refs {
		refs[i] = refOf(fmt.Sprintf("key-%d", i), "")
		hashes[i] = refs[i].Hash
	}
	values := [][]byte{make([]byte, 20), make([]byte, 40), make([]byte, 30)}
	rng := rand.New(rand.NewSource(1))
	hints := make([]statebackend.Hint, 64)
	round := 0
	work := func() {
		at := rng.Intn(n - 64)
		fixed.Prefetch(hashes[at:at+64], hints)
		for i := range 64 {
			v, _ := fixed.Slot(refs[at+i], hints[i])
			v[0]++
			fixed.Get(refs[at+i], hints[i])
			fixed.Put(refs[at+i], hints[i], v[:16:16])
		}
		for i := range 64 {
			r := refs[at+i]
			text.Put(r, statebackend.Hint{}, values[(round+i)%3])
			if i%2 == 0 {
				text.Delete(r)
				fixed.Delete(r)
			}
		}
		for i := range 64 {
			timer := refs[at+i]
			timer.Namespace = refs[i].Key
			fixed.Slot(timer, statebackend.Hint{})
			fixed.Delete(timer)
		}
		round++
	}
	for range 3000 {
		work()
	}
	if got := testing.AllocsPerRun(1000, work); got != 0 {
		t.Errorf("%v allocations a batch, want 0", got)
	}
}
