package weir_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/weirflow/weir"
)

func TestKeyGroups(t *testing.T) {
	t.Parallel()
	t.Run("O-KG-01_ranges_and_owners", func(t *testing.T) {
		t.Parallel()
		want := []weir.KeyGroupRange{{First: 0, Last: 2}, {First: 3, Last: 4}, {First: 5, Last: 7}, {First: 8, Last: 9}}
		for i, w := range want {
			if got := weir.KeyGroupRangeOf(10, 4, i); got != w {
				t.Errorf("range of subtask %d: got %v, want %v", i, got, w)
			}
		}
		for group, owner := range map[weir.KeyGroup]int{2: 0, 3: 1, 5: 2, 7: 2, 8: 3} {
			if got := weir.KeyGroupOwner(group, 10, 4); got != owner {
				t.Errorf("owner of key group %d: got %d, want %d", group, got, owner)
			}
		}
	})
	t.Run("O-KG-02_default_maximum", func(t *testing.T) {
		t.Parallel()
		for p, want := range map[int]int{1: 128, 85: 128, 86: 256, 171: 256, 200: 512, 30000: 32768} {
			if got := weir.DefaultMaxParallelism(p); got != want {
				t.Errorf("parallelism %d: got %d, want %d", p, got, want)
			}
		}
	})
	// The numbers of the case are Flink's, of another hash; the rule is DECISIONS 20.
	t.Run("O-KG-03_group_and_owner_of_a_hash", func(t *testing.T) {
		t.Parallel()
		for hash, want := range map[uint64][2]int{
			42: {0, 0}, 29 << 57: {29, 0}, 64<<57 - 1: {63, 1}, 64 << 57: {64, 2}, 80 << 57: {80, 2}, math.MaxUint64: {127, 3},
		} {
			group := weir.KeyGroupOf(hash, 128)
			if owner := weir.KeyGroupOwner(group, 128, 4); int(group) != want[0] || owner != want[1] {
				t.Errorf("hash %x: key group %d of subtask %d, want %v", hash, group, owner, want)
			}
		}
	})
	t.Run("O-KG-04_handles_restricted_to_the_new_ranges", func(t *testing.T) {
		t.Parallel()
		handles := []weir.KeyGroupRange{weir.KeyGroupRangeOf(10, 2, 0), weir.KeyGroupRangeOf(10, 2, 1)}
		want := []string{"H0[0,3]", "H0[4,4] H1[5,6]", "H1[7,9]"}
		for i, w := range want {
			got, sep := "", ""
			for j, h := range handles {
				if part := h.Intersect(weir.KeyGroupRangeOf(10, 3, i)); part.Len() > 0 {
					got += fmt.Sprintf("%sH%d%v", sep, j, part)
					sep = " "
				}
			}
			if got != w {
				t.Errorf("subtask %d: got %s, want %s", i, got, w)
			}
		}
	})
}

func TestKeyGroupRangesPartitionAndDifferByOneAtMost(t *testing.T) {
	t.Parallel()
	for _, maximum := range []int{1, 2, 3, 7, 10, 127, 128, 129, 4096, weir.MaxMaxParallelism} {
		for p := 1; p <= min(maximum, 300); p++ {
			next, least, most := int32(0), maximum, 0
			for i := range p {
				r := weir.KeyGroupRangeOf(maximum, p, i)
				if r.First != next {
					t.Fatalf("%d groups, parallelism %d: subtask %d begins at %d, want %d", maximum, p, i, r.First, next)
				}
				for g := r.First; g <= r.Last; g++ {
					if o := weir.KeyGroupOwner(weir.KeyGroup(g), maximum, p); o != i {
						t.Fatalf("%d groups, parallelism %d: group %d belongs to %d, lies in the range of %d", maximum, p, g, o, i)
					}
				}
				least, most, next = min(least, r.Len()), max(most, r.Len()), r.Last+1
			}
			if int(next) != maximum || most-least > 1 {
				t.Fatalf("%d groups, parallelism %d: end at %d, from %d to %d groups each", maximum, p, next, least, most)
			}
		}
	}
}

// With few groups a subtask, one more or less is felt: the fullest of 100 subtasks
// gets two groups of 128, 56 % more than its share.
func TestUnevenKeyGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		maximum, parallelism int
		want                 float64 // the fullest subtask's excess over its share
	}{
		{128, 1, 0}, {128, 64, 0}, {128, 3, 43*3.0/128 - 1}, {128, 100, 200.0/128 - 1}, {10, 4, 12.0/10 - 1}, {4096, 100, 4100.0/4096 - 1},
	} {
		most := 0
		for i := range c.parallelism {
			most = max(most, weir.KeyGroupRangeOf(c.maximum, c.parallelism, i).Len())
		}
		if got := float64(most*c.parallelism)/float64(c.maximum) - 1; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d groups, parallelism %d: excess %.4f, want %.4f", c.maximum, c.parallelism, got, c.want)
		}
	}
}

func TestKeyGroupOfScalesTheHighBits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hash    uint64
		maximum int
		want    weir.KeyGroup
	}{
		{0, 128, 0}, {0xffffffff, 128, 0}, {1 << 32, 128, 0}, {1 << 57, 128, 1}, {1<<57 - 1, 128, 0},
		{math.MaxUint64, 128, 127}, {math.MaxUint64, 1, 0}, {math.MaxUint64, weir.MaxMaxParallelism, weir.MaxMaxParallelism - 1},
		{1 << 63, 10, 5}, {1<<63 - 1, 10, 4},
	} {
		if got := weir.KeyGroupOf(c.hash, c.maximum); got != c.want {
			t.Errorf("hash %#x of %d: got %d, want %d", c.hash, c.maximum, got, c.want)
		}
	}
}

func TestKeysSpreadOverKeyGroups(t *testing.T) {
	t.Parallel()
	const keys = 200_000
	for _, maximum := range []int{10, 100, 128} { // a power of two or not
		count := make([]int, maximum)
		for i := range keys {
			count[weir.KeyGroupOf(xxh3.HashString(fmt.Sprintf("user-%d", i)), maximum)]++
		}
		mean := float64(keys) / float64(maximum)
		for g, n := range count {
			if math.Abs(float64(n)-mean) > 6*math.Sqrt(mean) {
				t.Errorf("group %d of %d has %d keys, want about %.0f", g, maximum, n, mean)
			}
		}
	}
}
