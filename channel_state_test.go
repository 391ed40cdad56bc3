package weir

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// keyedReads inverts KeyedChannelReaders: by new consumer the old ones that it reads,
// and the old ones that several read.
func keyedReads(maxParallelism, old, parallelism int) (reads [][]int, ambiguous []int) {
	reads = make([][]int, parallelism)
	for o := range old {
		first, last := KeyedChannelReaders(maxParallelism, old, o, maxParallelism, parallelism)
		if last-first > 1 {
			ambiguous = append(ambiguous, o)
		}
		for n := first; n < last; n++ {
			reads[n] = append(reads[n], o)
		}
	}
	return reads, ambiguous
}

func TestRescaling(t *testing.T) {
	t.Parallel()
	t.Run("O-RSC-01_ranges", func(t *testing.T) {
		t.Parallel()
		reads, ambiguous := keyedReads(MaxMaxParallelism, 4, 3)
		want := [][]int{{0, 1}, {1, 2}, {2, 3}}
		if !slices.EqualFunc(reads, want, slices.Equal) || !slices.Equal(ambiguous, []int{1, 2}) {
			t.Errorf("new consumers read %v, ambiguous %v", reads, ambiguous)
		}
	})
	t.Run("O-RSC-02_round_robin", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			old, parallelism int
			want             [][]int
		}{
			{7, 3, [][]int{{0, 3, 6}, {1, 4}, {2, 5}}},
			{3, 5, [][]int{{0}, {1}, {2}, nil, nil}},
		} {
			reads := make([][]int, c.parallelism)
			for o := range c.old {
				n := ChannelReader(o, c.parallelism)
				reads[n] = append(reads[n], o)
			}
			if !slices.EqualFunc(reads, c.want, slices.Equal) {
				t.Errorf("%d to %d: %v, want %v", c.old, c.parallelism, reads, c.want)
			}
		}
	})
	t.Run("O-RSC-04_filter", func(t *testing.T) {
		t.Parallel()
		if r := KeyGroupRangeOf(128, 3, 1); r != (KeyGroupRange{43, 85}) {
			t.Fatalf("old range %s", r)
		}
		if first, last := KeyedChannelReaders(128, 3, 1, 128, 2); first != 0 || last != 2 {
			t.Errorf("read by [%d,%d)", first, last)
		}
		processed := []bool{KeyGroupRangeOf(128, 2, 0).Contains(50), KeyGroupRangeOf(128, 2, 1).Contains(50)}
		if !processed[0] || processed[1] {
			t.Errorf("key group 50 is of new subtasks %v", processed)
		}
	})
}

// A record of any key that an old consumer's channel held is kept by exactly one of
// the new consumers that read it.
func TestEachKeyIsReadOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		oldMax := rapid.IntRange(1, 300).Draw(t, "old max")
		newMax := oldMax
		if rapid.Bool().Draw(t, "another max") {
			newMax = rapid.IntRange(1, 300).Draw(t, "new max")
		}
		old := rapid.IntRange(1, oldMax).Draw(t, "old parallelism")
		parallelism := rapid.IntRange(1, newMax).Draw(t, "new parallelism")
		hash := rapid.Uint64().Draw(t, "hash")
		o := KeyGroupOwner(KeyGroupOf(hash, oldMax), oldMax, old)
		first, last := KeyedChannelReaders(oldMax, old, o, newMax, parallelism)
		if first < 0 || last > parallelism || first >= last {
			t.Fatalf("readers [%d,%d) of %d", first, last, parallelism)
		}
		keep := 0
		for n := first; n < last; n++ {
			if KeyGroupRangeOf(newMax, parallelism, n).Contains(KeyGroupOf(hash, newMax)) {
				keep++
			}
		}
		if keep != 1 {
			t.Fatalf("%d of the readers [%d,%d) keep the record", keep, first, last)
		}
		if old == parallelism && oldMax == newMax && (first != o || last != o+1) {
			t.Fatalf("unchanged, but old %d is read by [%d,%d)", o, first, last)
		}
	})
}

// Readers are no more than have key groups in common with the old consumer.
func TestReadersOverlap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.IntRange(1, 300).Draw(t, "max")
		old := rapid.IntRange(1, groups).Draw(t, "old")
		parallelism := rapid.IntRange(1, groups).Draw(t, "new")
		o := rapid.IntRange(0, old-1).Draw(t, "old consumer")
		first, last := KeyedChannelReaders(groups, old, o, groups, parallelism)
		for n := range parallelism {
			overlap := KeyGroupRangeOf(groups, old, o).Intersect(KeyGroupRangeOf(groups, parallelism, n)).Len() > 0
			if reads := n >= first && n < last; reads != overlap {
				t.Fatalf("new %d reads old %d: %t, they overlap: %t", n, o, reads, overlap)
			}
		}
	})
}

func TestPointwiseIsConsistent(t *testing.T) {
	t.Parallel()
	for producers := 1; producers <= 13; producers++ {
		for consumers := 1; consumers <= 13; consumers++ {
			read := make([]int, producers)
			for c := range consumers {
				first, last := PointwiseProducers(producers, consumers, c)
				for p := first; p < last; p++ {
					read[p]++
					if f, l := PointwiseConsumers(producers, consumers, p); c < f || c >= l {
						t.Errorf("%d to %d: consumer %d reads producer %d, whose consumers are [%d,%d)", producers, consumers, c, p, f, l)
					}
				}
			}
			for p, n := range read {
				if f, l := PointwiseConsumers(producers, consumers, p); n == 0 || l-f != n {
					t.Errorf("%d to %d: producer %d has %d consumers, [%d,%d)", producers, consumers, p, n, f, l)
				}
			}
		}
	}
}
