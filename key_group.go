package weir

import (
	"fmt"
	"math/bits"
)

// MaxMaxParallelism is the largest number of key groups a job may have.
const MaxMaxParallelism = 32768

// KeyGroup is the unit in which keyed state moves between subtasks.
type KeyGroup uint16

// KeyGroupRange is a closed interval of key groups. An empty range has Last < First.
type KeyGroupRange struct {
	First, Last int32
}

// KeyGroupOf returns the key group of a key's hash (behaviour §21.1, element
// format version 1): the high 32 bits scaled to [0, maxParallelism). The low 32
// bits stay free for use as a table's tag.
func KeyGroupOf(hash uint64, maxParallelism int) KeyGroup {
	return KeyGroup((hash >> 32) * uint64(maxParallelism) >> 32)
}

// KeyGroupRangeOf returns the key groups of subtask i of p (behaviour §21.1):
// [ceil(i·max/p), ceil((i+1)·max/p) − 1].
func KeyGroupRangeOf(maxParallelism, parallelism, subtask int) KeyGroupRange {
	m, p, i := int64(maxParallelism), int64(parallelism), int64(subtask)
	return KeyGroupRange{
		First: int32((i*m + p - 1) / p),
		Last:  int32(((i+1)*m - 1) / p),
	}
}

// KeyGroupOwner returns the subtask of p that owns a key group: floor(group·p/max).
func KeyGroupOwner(group KeyGroup, maxParallelism, parallelism int) int {
	return int(group) * parallelism / maxParallelism
}

// DefaultMaxParallelism is the number of key groups of an operator whose user
// named none (behaviour §21.1): min(max(2^ceil(log2(p + p/2)), 128), 32768).
func DefaultMaxParallelism(parallelism int) int {
	want := uint(parallelism + parallelism/2)
	up := 1 << bits.Len(want-1)
	return min(max(up, 128), MaxMaxParallelism)
}

// Len is the number of key groups in the range.
func (r KeyGroupRange) Len() int { return max(0, int(r.Last-r.First)+1) }

// Contains says whether the group lies in the range.
func (r KeyGroupRange) Contains(g KeyGroup) bool {
	return int32(g) >= r.First && int32(g) <= r.Last
}

// Intersect returns the groups that lie in both ranges.
func (r KeyGroupRange) Intersect(o KeyGroupRange) KeyGroupRange {
	return KeyGroupRange{First: max(r.First, o.First), Last: min(r.Last, o.Last)}
}

func (r KeyGroupRange) String() string { return fmt.Sprintf("[%d,%d]", r.First, r.Last) }
