package statetest

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

// subtasks fills a backend for each of p subtasks and returns their handles.
func subtasks(t *testing.T, s Subject, p int) (handles []weir.KeyedStateHandle, count, text contents) {
	t.Helper()
	count, text = contents{}, contents{}
	for i := range p {
		kg := weir.KeyGroupRangeOf(groups, p, i)
		b, countTab, textTab := backend(t, s, kg)
		for n := range 2000 {
			if kg.Contains(groupOf(number(n))) {
				count.put(countTab, number(n), "", number(n*n))
				text.put(textTab, number(n), "window", strings.Repeat("t", n%70))
				text.put(textTab, number(n), "other", number(n))
			}
		}
		snap := snapshot(t, b)
		handles = append(handles, handle(s, kg, written(t, snap)))
		snap.Release()
		ok(t, b.Close())
	}
	return handles, count, text
}

func testRescale(t *testing.T, s Subject) {
	for _, old := range []int{1, 2, 3, groups} {
		handles, count, text := subtasks(t, s, old)
		for _, p := range []int{1, 2, 3, 4, groups} {
			for i := range p {
				kg := weir.KeyGroupRangeOf(groups, p, i)
				var mine []weir.KeyedStateHandle
				for _, h := range handles {
					// The handle names what is wanted of it, or all that is in it.
					narrow := h
					narrow.Range = h.Range.Intersect(kg)
					mine = append(mine, []weir.KeyedStateHandle{narrow, h}[i%2])
				}
				gotCount, gotText := restored(t, s, kg, mine...)
				equal(t, "count", gotCount, count.within(kg))
				equal(t, "text", gotText, text.within(kg))
			}
		}
	}
}

// A state that the new version of a job does not ask for is kept.
func testCarriedOn(t *testing.T, s Subject) {
	handles, count, text := subtasks(t, s, 2)
	b := empty(t, s, allGroups)
	ok(t, restore(b, handles...))
	if got, there := b.RestoredSchema("count"); !there || got != fixed.Schema {
		t.Errorf("restored schema %+v, %v", got, there)
	}
	if _, there := b.RestoredSchema("nothing"); there {
		t.Error("a schema of a state that is not there")
	}
	changed := fixed
	changed.Schema.Value = "struct{n int64; renamed int64}"
	tab := table(t, b, changed)
	equal(t, "count", scan(t, tab), count)
	if got, _ := b.RestoredSchema("count"); got != fixed.Schema {
		t.Errorf("restored schema became %+v", got)
	}
	other := variable
	other.FixedSize = 8
	if _, err := b.Table(other); !errors.Is(err, statebackend.ErrDescriptor) {
		t.Errorf("restored state under another layout: %v", err)
	}
	snap := snapshot(t, b)
	if got := snap.Schemas(); !slices.Contains(got, changed.Schema) || !slices.Contains(got, variable.Schema) {
		t.Errorf("schemas %+v", got)
	}
	stream := written(t, snap)
	snap.Release()
	ok(t, b.Close())
	again := empty(t, s, allGroups)
	defer closed(t, again)
	ok(t, restore(again, handle(s, allGroups, stream)))
	equal(t, "text, two restores later", scan(t, table(t, again, variable)), text)
	count.put(table(t, again, changed), "new", "", number(1))
	equal(t, "count, two restores later", scan(t, table(t, again, changed)), count)
}

func testRestoreNothing(t *testing.T, s Subject) {
	b := empty(t, s, allGroups)
	ok(t, restore(b))
	snap := snapshot(t, b)
	none := handle(s, allGroups, written(t, snap))
	snap.Release()
	ok(t, b.Close())
	b, _, _ = backend(t, s, allGroups)
	snap = snapshot(t, b)
	hollow := handle(s, allGroups, written(t, snap))
	snap.Release()
	ok(t, b.Close())
	for _, h := range []weir.KeyedStateHandle{none, hollow} {
		count, text := restored(t, s, allGroups, h)
		if len(count)+len(text) > 0 {
			t.Errorf("%d entries from nothing", len(count)+len(text))
		}
	}
	// An operator with more subtasks than key groups has some without any.
	idle := weir.KeyGroupRange{First: 3, Last: 2}
	b, _, _ = backend(t, s, idle)
	snap = snapshot(t, b)
	written(t, snap)
	snap.Release()
	ok(t, b.Close())
}

func testForeign(t *testing.T, s Subject) {
	handles, _, _ := subtasks(t, s, 1)
	wrongBackend := handles[0]
	wrongBackend.Backend = "another"
	b := empty(t, s, allGroups)
	if err := restore(b, wrongBackend); !errors.Is(err, statebackend.ErrUnsupported) || !strings.Contains(err.Error(), "another") {
		t.Errorf("another backend's handle: %v", err)
	}
	ok(t, b.Close())
	b, err := s.Factory.New(statebackend.Options{MaxParallelism: 2 * groups, KeyGroups: allGroups})
	ok(t, err)
	if err := restore(b, handles[0]); !errors.Is(err, statebackend.ErrMaxParallelism) {
		t.Errorf("another maximum parallelism: %v", err)
	}
	ok(t, b.Close())
	b = empty(t, s, allGroups)
	if err := restore(b, handles[0], handles[0]); !errors.Is(err, statebackend.ErrCorrupt) {
		t.Errorf("the same key groups from two handles: %v", err)
	}
	ok(t, b.Close())

	errOpen := errors.New("no such file")
	b = empty(t, s, allGroups)
	named := handles[0]
	named.Handle = weir.StateHandle{File: "chk-7/state-1", Offset: 40, Length: 100}
	err = b.Restore(context.Background(), []weir.KeyedStateHandle{named}, func(context.Context, weir.StateHandle) (io.ReadCloser, error) { return nil, errOpen })
	if !errors.Is(err, errOpen) || !strings.Contains(err.Error(), "chk-7/state-1") {
		t.Errorf("a handle that does not open: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Restore(ctx, handles, openInline); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled restore: %v", err)
	}
	ok(t, b.Close())
}

// small is a stream with entries of every kind, of few bytes.
func small(t *testing.T, s Subject) []byte {
	t.Helper()
	b, count, text := backend(t, s, allGroups)
	want := contents{}
	for i := range 6 {
		want.put(count, number(i), "", number(i))
		want.put(text, number(i), "ns", strings.Repeat("v", i*9))
	}
	want.put(text, "large", "", strings.Repeat("l", 5000))
	text.Delete(ref(number(3), "ns"))
	snap := snapshot(t, b)
	stream := written(t, snap)
	snap.Release()
	ok(t, b.Close())
	return stream
}

func testCut(t *testing.T, s Subject) {
	stream := small(t, s)
	for n := range stream {
		b := empty(t, s, allGroups)
		if err := restore(b, handle(s, allGroups, stream[:n])); !errors.Is(err, statebackend.ErrCorrupt) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(stream), err)
		}
		ok(t, b.Close())
	}
	b := empty(t, s, allGroups)
	if err := restore(b, handle(s, allGroups, append(slices.Clone(stream), 0))); !errors.Is(err, statebackend.ErrCorrupt) {
		t.Errorf("a byte too many: %v", err)
	}
	ok(t, b.Close())
}

func testFlipped(t *testing.T, s Subject) {
	stream := small(t, s)
	for i := range stream {
		for _, bit := range []byte{1, 0x10, 0x80} {
			bad := slices.Clone(stream)
			bad[i] ^= bit
			b := empty(t, s, allGroups)
			if err := restore(b, handle(s, allGroups, bad)); !refused(err) {
				t.Fatalf("bit %#x of byte %d of %d flipped: %v", bit, i, len(stream), err)
			}
			ok(t, b.Close())
		}
	}
	count, _ := restored(t, s, allGroups, handle(s, allGroups, stream))
	if !maps.Equal(count, count.within(allGroups)) || len(count) != 6 {
		t.Fatalf("the stream itself holds %v", count)
	}
}
