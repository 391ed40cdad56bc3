package statetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

// Subject is a kind of backend under test.
type Subject struct {
	Factory statebackend.Factory
	// Leaked says what of everything the factory's backends took is not given back,
	// or "" if all is. It is asked when all backends are closed and all snapshots
	// released.
	Leaked func() string
}

// Run runs the suite. open makes a subject of its own for each test.
func Run(t *testing.T, open func(t testing.TB) Subject) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s Subject)
	}{
		{"table_behaves_like_a_map", testModel},
		{"table_behaves_like_a_map_when_tags_collide", testModelCollisions},
		{"values_of_all_sizes", testSizes},
		{"growth_to_many_entries", testGrowth},
		{"hints_stay_hints", testHints},
		{"one_key_with_many_namespaces", testNamespaces},
		{"timers_come_and_go", testTimers},
		{"descriptors", testDescriptors},
		{"snapshot_is_isolated_from_concurrent_writes", testIsolation},
		{"two_snapshots_outstanding", testTwoOutstanding},
		{"snapshot_outlives_its_backend", testOutlives},
		{"snapshot_is_released_exactly_once", testReleaseOnce},
		{"write_stops", testWriteStops},
		{"restore_at_other_ranges", testRescale},
		{"restored_state_is_carried_on", testCarriedOn},
		{"restore_of_nothing", testRestoreNothing},
		{"foreign_handles_are_refused", testForeign},
		{"cut_streams_give_errors", testCut},
		{"flipped_bits_give_errors", testFlipped},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			c.run(t, s)
			if s.Leaked != nil && !t.Failed() {
				if what := s.Leaked(); what != "" {
					t.Errorf("leaked: %s", what)
				}
			}
		})
	}
}

// groups is the number of key groups of most tests: no power of two.
const groups = 10

var allGroups = weir.KeyGroupRange{First: 0, Last: groups - 1}

// fixed and variable are the tables of most tests.
var (
	fixed = statebackend.Descriptor{
		Name: "count", FixedSize: 16, Schema: weir.StateSchema{State: "count", Key: "string", Value: "struct{n int64; at int64}"},
	}
	variable = statebackend.Descriptor{
		Name: "text", Schema: weir.StateSchema{State: "text", Key: "string", Value: "string"},
	}
)

// fataler is what testing.TB and rapid's T share.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// backend makes a backend for some key groups, with both tables.
func backend(t fataler, s Subject, kg weir.KeyGroupRange) (b statebackend.Backend, count, text statebackend.Table) {
	t.Helper()
	b = empty(t, s, kg)
	return b, table(t, b, fixed), table(t, b, variable)
}

func empty(t fataler, s Subject, kg weir.KeyGroupRange) statebackend.Backend {
	t.Helper()
	b, err := s.Factory.New(statebackend.Options{MaxParallelism: groups, KeyGroups: kg})
	ok(t, err)
	return b
}

func table(t fataler, b statebackend.Backend, d statebackend.Descriptor) statebackend.Table {
	t.Helper()
	tab, err := b.Table(d)
	ok(t, err)
	return tab
}

func ok(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected: %v", err)
	}
}

// hash stands for the codec's: well mixed, the same everywhere.
func hash(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range key {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

func ref(key, namespace string) statebackend.Ref {
	return statebackend.Ref{Hash: hash([]byte(key)), Key: []byte(key), Namespace: []byte(namespace)}
}

func groupOf(key string) weir.KeyGroup { return weir.KeyGroupOf(hash([]byte(key)), groups) }

// contents are the entries of a table by key and namespace.
type contents map[[2]string]string

func scan(t fataler, tab statebackend.Table) contents {
	t.Helper()
	got := contents{}
	last := weir.KeyGroup(0)
	tab.Scan(func(g weir.KeyGroup, key, namespace, value []byte) bool {
		at := [2]string{string(key), string(namespace)}
		if _, twice := got[at]; twice {
			t.Fatalf("scan: %q is there twice", at)
		}
		if g < last {
			t.Fatalf("scan: key group %d after %d", g, last)
		}
		last = g
		got[at] = string(value)
		return true
	})
	if len(got) != tab.Len() {
		t.Fatalf("scan found %d entries, Len says %d", len(got), tab.Len())
	}
	return got
}

func equal(t fataler, what string, got, want contents) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for at, v := range want {
		if g, there := got[at]; !there || g != v {
			t.Fatalf("%s: %.60q is %.40q (there: %v), want %.40q; %d entries, want %d", what, at, g, there, v, len(got), len(want))
		}
	}
	t.Fatalf("%s: %d entries, want %d", what, len(got), len(want))
}

// within are the entries whose keys are in some key groups.
func (c contents) within(kg weir.KeyGroupRange) contents {
	part := contents{}
	for at, v := range c {
		if kg.Contains(groupOf(at[0])) {
			part[at] = v
		}
	}
	return part
}

func (c contents) put(tab statebackend.Table, key, namespace, value string) {
	tab.Put(ref(key, namespace), statebackend.Hint{}, []byte(value))
	c[[2]string{key, namespace}] = value
}

// written is a snapshot's stream.
func written(t fataler, snap statebackend.Snapshot) []byte {
	t.Helper()
	var buf bytes.Buffer
	n, err := snap.Write(context.Background(), &buf)
	ok(t, err)
	if n != int64(buf.Len()) {
		t.Fatalf("Write says %d bytes, wrote %d", n, buf.Len())
	}
	return buf.Bytes()
}

func snapshot(t fataler, b statebackend.Backend) statebackend.Snapshot {
	t.Helper()
	snap, err := b.Snapshot()
	ok(t, err)
	return snap
}

// handle stands for a stream that was stored inline.
func handle(s Subject, kg weir.KeyGroupRange, stream []byte) weir.KeyedStateHandle {
	return weir.KeyedStateHandle{Range: kg, Backend: s.Factory.Name(), Handle: weir.StateHandle{Inline: stream, Length: int64(len(stream))}}
}

func openInline(_ context.Context, h weir.StateHandle) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(h.Inline)), nil
}

func restore(b statebackend.Backend, handles ...weir.KeyedStateHandle) error {
	return b.Restore(context.Background(), handles, openInline)
}

// restored returns what a stream holds of some key groups.
func restored(t fataler, s Subject, kg weir.KeyGroupRange, handles ...weir.KeyedStateHandle) (count, text contents) {
	t.Helper()
	b := empty(t, s, kg)
	ok(t, restore(b, handles...))
	count, text = scan(t, table(t, b, fixed)), scan(t, table(t, b, variable))
	ok(t, b.Close())
	return count, text
}

func number(n int) string { return fmt.Sprintf("%016d", n) }

// closed closes the backend at the end, whatever happens.
func closed(t *testing.T, b statebackend.Backend) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func refused(err error) bool {
	return errors.Is(err, statebackend.ErrCorrupt) || errors.Is(err, statebackend.ErrUnsupported) ||
		errors.Is(err, statebackend.ErrMaxParallelism) || errors.Is(err, statebackend.ErrDescriptor)
}
