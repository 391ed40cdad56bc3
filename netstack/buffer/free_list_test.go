package buffer

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTheLongestFreeIsTakenFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l freeList
		var want []*Buffer
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "push") > 0 {
				b := &Buffer{account: len(want)}
				l.push(b)
				want = append(want, b)
				continue
			}
			b := l.pop()
			if len(want) == 0 {
				if b != nil {
					t.Fatal("a buffer of an empty list")
				}
				continue
			}
			if b != want[0] {
				t.Fatalf("got %v, want %v", b, want[0])
			}
			want = want[1:]
		}
		if l.n != len(want) {
			t.Fatalf("%d free, want %d", l.n, len(want))
		}
	})
}
