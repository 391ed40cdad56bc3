package statetest

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

func testSizes(t *testing.T, s Subject) {
	b, _, text := backend(t, s, allGroups)
	defer closed(t, b)
	want := contents{}
	sizes := []int{0, 1, 7, 8, 9, 4040, 4071, 4072, 4073, 4096, 4097, 8192, 100_000, 1 << 20, 3<<20 + 5}
	for i, n := range sizes {
		want.put(text, fmt.Sprint("key", i), "", strings.Repeat("v", n))
	}
	want.put(text, "", "", "the empty key")
	want.put(text, strings.Repeat("k", statebackend.MaxKeyBytes), strings.Repeat("n", statebackend.MaxNamespaceBytes), "long names")
	equal(t, "after insert", scan(t, text), want)
	for round := range 2 { // each value grows, then shrinks
		for i := range sizes {
			want.put(text, fmt.Sprint("key", i), "", strings.Repeat("w", sizes[(i+1+round*3)%len(sizes)]))
		}
		equal(t, "after update", scan(t, text), want)
	}
	snap := snapshot(t, b)
	_, got := restored(t, s, allGroups, handle(s, allGroups, written(t, snap)))
	snap.Release()
	equal(t, "restored", got, want)

	largest := table(t, b, statebackend.Descriptor{Name: "largest", FixedSize: statebackend.MaxFixedSize})
	for i := range 10 {
		v, created := largest.Slot(ref(fmt.Sprint(i), ""), statebackend.Hint{})
		if len(v) != statebackend.MaxFixedSize || !created {
			t.Fatalf("slot of %d bytes, created %v", len(v), created)
		}
		v[4095] = byte(i)
	}
	for i := range 10 {
		if v, _ := largest.Get(ref(fmt.Sprint(i), ""), statebackend.Hint{}); v[4095] != byte(i) {
			t.Fatalf("largest value %d holds %d", i, v[4095])
		}
	}
}

func testGrowth(t *testing.T, s Subject) {
	const n = 300_000 // in one key group, so that every structure has to grow
	b, err := s.Factory.New(statebackend.Options{MaxParallelism: 1})
	ok(t, err)
	defer closed(t, b)
	tab := table(t, b, statebackend.Descriptor{Name: "n", FixedSize: 8})
	key := make([]byte, 8)
	slot := func(i int) ([]byte, bool) {
		binary.LittleEndian.PutUint64(key, uint64(i))
		return tab.Slot(statebackend.Ref{Hash: hash(key), Key: key}, statebackend.Hint{})
	}
	for i := range n {
		v, created := slot(i)
		if !created {
			t.Fatalf("key %d was there", i)
		}
		binary.LittleEndian.PutUint64(v, uint64(i))
	}
	for i := range n {
		if v, created := slot(i); created || binary.LittleEndian.Uint64(v) != uint64(i) {
			t.Fatalf("key %d: created %v, holds %d", i, created, v)
		}
	}
	for i := range n {
		binary.LittleEndian.PutUint64(key, uint64(i))
		if i%10 != 0 && !tab.Delete(statebackend.Ref{Hash: hash(key), Key: key}) {
			t.Fatalf("key %d is not there", i)
		}
	}
	if st := b.Stats(); tab.Len() != n/10 || st.Entries != n/10 {
		t.Fatalf("%d entries left, stats %+v", tab.Len(), st)
	}
	for i := 0; i < n; i += 10 {
		if v, created := slot(i); created || binary.LittleEndian.Uint64(v) != uint64(i) {
			t.Fatalf("after deletes, key %d: created %v, holds %d", i, created, v)
		}
	}
}

func testHints(t *testing.T, s Subject) {
	b, count, _ := backend(t, s, allGroups)
	defer closed(t, b)
	const n = 5000
	hashes := make([]uint64, n)
	for i := range n {
		hashes[i] = hash([]byte(number(i)))
	}
	hints := make([]statebackend.Hint, n)
	count.Prefetch(hashes, hints) // of an empty table: all stale after the first insert that grows it
	for i := range n {
		v, created := count.Slot(ref(number(i), ""), hints[i])
		if !created {
			t.Fatalf("key %d was there", i)
		}
		copy(v, number(i))
	}
	count.Prefetch(hashes, hints)
	for i := range 100 { // of the key, not of what else it has
		v, created := count.Slot(ref(number(i), "ns"), hints[i])
		if !created || string(v) != strings.Repeat("\x00", 16) {
			t.Fatalf("namespace of key %d: %q, created %v", i, v, created)
		}
		copy(v, "of the namespace")
	}
	for i := range 100 {
		if v, _ := count.Get(ref(number(i), "ns"), statebackend.Hint{}); string(v) != "of the namespace" {
			t.Fatalf("namespace of key %d holds %q", i, v)
		}
	}
	count.Prefetch(hashes, hints)
	for i := range n {
		if i%3 == 0 {
			count.Delete(ref(number(i), ""))
		}
	}
	for i := range n {
		v, there := count.Get(ref(number(i), ""), hints[i])
		if there != (i%3 != 0) || there && string(v) != number(i) {
			t.Fatalf("key %d after deletes: %q, %v", i, v, there)
		}
	}
}

func testNamespaces(t *testing.T, s Subject) {
	b, _, text := backend(t, s, allGroups)
	defer closed(t, b)
	const n = 10_000
	want := contents{}
	for i := range n {
		want.put(text, "the one key", fmt.Sprint("window ", i), fmt.Sprint("value ", i))
	}
	// Key and namespace must not run together.
	want.put(text, "ab", "c", "1")
	want.put(text, "a", "bc", "2")
	want.put(text, "abc", "", "3")
	equal(t, "namespaces", scan(t, text), want)
	for i := 0; i < n; i += 2 {
		at := [2]string{"the one key", fmt.Sprint("window ", i)}
		if !text.Delete(ref(at[0], at[1])) {
			t.Fatalf("%q is not there", at)
		}
		delete(want, at)
	}
	equal(t, "namespaces after deletes", scan(t, text), want)
	snap := snapshot(t, b)
	_, got := restored(t, s, allGroups, handle(s, allGroups, written(t, snap)))
	snap.Release()
	equal(t, "restored", got, want)
}

// Timers are registered and fire for ever: what they leave must be reused.
func testTimers(t *testing.T, s Subject) {
	b, _, _ := backend(t, s, allGroups)
	defer closed(t, b)
	timers := table(t, b, statebackend.Descriptor{Name: "timers", FixedSize: 1})
	at := func(key, n int) statebackend.Ref {
		return ref(number(key), string(binary.BigEndian.AppendUint64(nil, uint64(n))))
	}
	const keys, ahead, rounds = 16, 600, 20_000
	var early statebackend.Stats
	for n := range rounds {
		timers.Slot(at(n%keys, n), statebackend.Hint{})
		if n >= ahead {
			old := n - ahead
			if !timers.Delete(at(old%keys, old)) {
				t.Fatalf("timer %d is not there", old)
			}
		}
		if n == rounds/10 {
			early = b.Stats()
		}
	}
	late := b.Stats()
	if timers.Len() != ahead || late.Bytes > 2*early.Bytes {
		t.Fatalf("%d timers; %+v, early on %+v", timers.Len(), late, early)
	}
}

func testDescriptors(t *testing.T, s Subject) {
	b, count, _ := backend(t, s, allGroups)
	defer closed(t, b)
	if again := table(t, b, fixed); again != count {
		t.Fatalf("the same descriptor gave another table")
	}
	other, schema := fixed, fixed
	other.FixedSize = 24
	schema.Schema.Value = "string"
	for _, d := range []statebackend.Descriptor{other, schema} {
		_, err := b.Table(d)
		if err == nil {
			t.Fatalf("a second descriptor of the same name was accepted")
		}
		for _, part := range []string{"count", "16", fixed.Schema.Value} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not name %s", err, part)
			}
		}
	}
	for _, d := range []statebackend.Descriptor{{Name: "big", FixedSize: statebackend.MaxFixedSize + 1}, {Name: "neg", FixedSize: -1}, {}} {
		if _, err := b.Table(d); err == nil {
			t.Errorf("descriptor %+v was accepted", d)
		}
	}
	for _, opts := range []statebackend.Options{
		{MaxParallelism: 0}, {MaxParallelism: weir.MaxMaxParallelism + 1},
		{MaxParallelism: 4, KeyGroups: weir.KeyGroupRange{First: 0, Last: 4}},
		{MaxParallelism: 4, KeyGroups: weir.KeyGroupRange{First: -1, Last: 2}},
	} {
		if _, err := s.Factory.New(opts); err == nil {
			t.Errorf("options %+v were accepted", opts)
		}
	}
}
