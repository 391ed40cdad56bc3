package statetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/statebackend"
)

// The snapshot is written by another goroutine while the task goes on: run it
// with the race detector.
func testIsolation(t *testing.T, s Subject) {
	b, count, text := backend(t, s, allGroups)
	defer closed(t, b)
	const keys, rounds = 3000, 6
	wantCount, wantText := contents{}, contents{}
	change := func(round, i int) {
		wantCount.put(count, number(i), "", number(i*1000+round))
		switch i % 5 {
		case round % 5:
			text.Delete(ref(number(i), "ns"))
			delete(wantText, [2]string{number(i), "ns"})
		default:
			wantText.put(text, number(i), "ns", number(round)[:1+(i+round)%16])
		}
	}
	for i := range keys {
		change(0, i)
	}
	for round := 1; round <= rounds; round++ {
		snap := snapshot(t, b)
		atCount, atText := maps.Clone(wantCount), maps.Clone(wantText)
		var buf bytes.Buffer
		g := group.New(context.Background(), "statetest")
		ok(t, g.Go("write", func(ctx context.Context) error {
			_, err := snap.Write(ctx, &buf)
			snap.Release()
			return err
		}))
		for i := range keys {
			change(round, (i*7)%keys)
		}
		ok(t, g.Wait())
		gotCount, gotText := restored(t, s, allGroups, handle(s, allGroups, buf.Bytes()))
		equal(t, fmt.Sprint("count, round ", round), gotCount, atCount)
		equal(t, fmt.Sprint("text, round ", round), gotText, atText)
	}
	equal(t, "count at the end", scan(t, count), wantCount)
	equal(t, "text at the end", scan(t, text), wantText)
}

func testTwoOutstanding(t *testing.T, s Subject) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		b, count, text := backend(t, s, allGroups)
		want := contents{}
		var snaps []statebackend.Snapshot
		var at []contents
		step := func(n int) {
			for i := range 500 {
				want.put(count, number(i*(1+n%3)), "", number(n))
				text.Put(ref(number(i), ""), statebackend.Hint{}, bytes.Repeat([]byte("x"), 100*n))
				if i%4 == n%4 {
					count.Delete(ref(number(i), ""))
					delete(want, [2]string{number(i), ""})
				}
			}
		}
		for n := range 3 {
			step(n)
			snaps = append(snaps, snapshot(t, b))
			at = append(at, maps.Clone(want))
		}
		for n, i := range order {
			step(3 + n)
			got, _ := restored(t, s, allGroups, handle(s, allGroups, written(t, snaps[i])))
			equal(t, fmt.Sprintf("snapshot %d, order %v", i, order), got, at[i])
			snaps[i].Release()
		}
		step(6)
		equal(t, "at the end", scan(t, count), want)
		ok(t, b.Close())
	}
}

func testOutlives(t *testing.T, s Subject) {
	b, count, _ := backend(t, s, allGroups)
	want := contents{}
	for i := range 1000 {
		want.put(count, number(i), "", number(i))
	}
	first := snapshot(t, b)
	second := snapshot(t, b)
	count.Put(ref("later", ""), statebackend.Hint{}, []byte(number(7)))
	ok(t, b.Close())
	for _, snap := range []statebackend.Snapshot{second, first} {
		got, _ := restored(t, s, allGroups, handle(s, allGroups, written(t, snap)))
		equal(t, "after Close", got, want)
		snap.Release()
	}
	if _, err := b.Snapshot(); err == nil {
		t.Error("a closed backend gave a snapshot")
	}
}

func testReleaseOnce(t *testing.T, s Subject) {
	b, count, _ := backend(t, s, allGroups)
	defer closed(t, b)
	count.Slot(ref("a", ""), statebackend.Hint{})
	unwritten := snapshot(t, b)
	count.Slot(ref("a", ""), statebackend.Hint{})
	unwritten.Release()
	if _, err := unwritten.Write(context.Background(), &bytes.Buffer{}); err == nil {
		t.Error("a released snapshot was written")
	}
	defer func() {
		if recover() == nil {
			t.Error("a second Release went unnoticed")
		}
	}()
	unwritten.Release()
}

// failingWriter fails, or cancels, after some bytes.
type failingWriter struct {
	left   int
	cancel context.CancelFunc
}

var errDisk = errors.New("the disk is full")

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left > 0 {
		return len(b), nil
	}
	if w.cancel != nil {
		w.cancel()
		return len(b), nil
	}
	return 0, errDisk
}

func testWriteStops(t *testing.T, s Subject) {
	b, _, text := backend(t, s, allGroups)
	defer closed(t, b)
	for i := range 64 {
		text.Put(ref(number(i), ""), statebackend.Hint{}, make([]byte, 100_000))
	}
	snap := snapshot(t, b)
	defer snap.Release()
	if _, err := snap.Write(context.Background(), &failingWriter{left: 1 << 20}); !errors.Is(err, errDisk) {
		t.Errorf("got %v, want the writer's error", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if n, err := snap.Write(ctx, &failingWriter{left: 1 << 20, cancel: cancel}); !errors.Is(err, context.Canceled) || n > 5<<20 {
		t.Errorf("got %v after %d bytes, want the context's error soon", err, n)
	}
	if len(written(t, snap)) < 6_400_000 {
		t.Error("a snapshot must be writable again after a failure")
	}
	if got := snap.Schemas(); len(got) != 2 || got[0] != fixed.Schema || got[1] != variable.Schema {
		t.Errorf("schemas %+v", got)
	}
}
