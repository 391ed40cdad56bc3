package heap

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

// Hints of keys that differ little, in lengths of all kinds, and of which many have the
// same hash: what a hint leads to is what a search finds, or nothing.
func TestHintedIsWhatIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := newTestBackend(t, NewPagePool(1<<20), 128, all128)
		table := tableOf(t, b, "values", rapid.SampledFrom([]int{1, 8, 16, 100}).Draw(rt, "size"))
		keys := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) []byte {
			key := bytes.Repeat([]byte{'k'}, rapid.OneOf(rapid.IntRange(0, 80), rapid.IntRange(15, 18)).Draw(rt, "length"))
			if len(key) > 0 {
				key[rapid.IntRange(0, len(key)-1).Draw(rt, "place")] = rapid.ByteRange('j', 'l').Draw(rt, "byte")
			}
			return key
		}), 1, 2*prefetchBatch).Draw(rt, "keys")
		hash := func(key []byte) uint64 { return uint64(len(key)%3)<<62 | 7 }
		known := keys[:rapid.IntRange(0, len(keys)).Draw(rt, "known")]
		for i, key := range known {
			slot, _ := table.SlotPlain(hash(key), key, statebackend.Hint{})
			slot[0] = byte(i)
		}
		hashes := make([]uint64, len(keys))
		for i, key := range keys {
			hashes[i] = hash(key)
		}
		hints := make([]statebackend.Hint, len(keys))
		table.Prefetch(hashes, hints)
		hits := 0
		for i, key := range keys {
			found := table.find(&statebackend.Ref{Hash: hashes[i], Key: key})
			if r, _ := table.hinted(hashes[i], key, hints[i]); r != nil {
				hits++
				if hints[i].Slot != found.at {
					rt.Fatalf("the hint of %q leads to %x, found was %x", key, hints[i].Slot, found.at)
				}
			}
			want, there := table.get(&statebackend.Ref{Hash: hashes[i], Key: key})
			if got, ok := table.GetPlain(hashes[i], key, hints[i]); ok != there || !bytes.Equal(got, want) {
				rt.Fatalf("%q is %x %t by its hint, want %x %t", key, got, ok, want, there)
			}
		}
		if len(known) > 0 && hits == 0 {
			rt.Fatalf("%d keys are there, and no hint led to one", len(known))
		}
	})
}

func TestHintIsOfNoOtherKey(t *testing.T) {
	t.Parallel()
	for n := range 70 {
		key := bytes.Repeat([]byte{'k'}, n)
		b := newTestBackend(t, NewPagePool(1<<20), 1, weir.KeyGroupRange{})
		table := tableOf(t, b, "values", 8)
		table.SlotPlain(1, key, statebackend.Hint{})
		hints := make([]statebackend.Hint, 1)
		table.Prefetch([]uint64{1}, hints)
		if r, _ := table.hinted(1, key, hints[0]); r == nil {
			t.Fatalf("%q is not found by its hint", key)
		}
		for place := range n {
			other := bytes.Clone(key)
			other[place] = 'l'
			if r, _ := table.hinted(1, other, hints[0]); r != nil {
				t.Fatalf("%q is taken for %q", other, key)
			}
		}
	}
}
