package generator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// splitVersion begins an encoded split.
const splitVersion = 1

// ErrBadSplit is wrapped when a split's bytes cannot be read.
var ErrBadSplit = errors.New("bad split of a generator")

// maxSplits bounds the number of splits of a source.
const maxSplits = 1 << 20

// split is every of-th number, from index on.
type split struct {
	index, of int64
	done      int64 // numbers emitted so far
}

// Progress is how far a split was read: the numbers Index + k·Splits were emitted for
// all k less than Emitted.
type Progress struct{ Index, Splits, Emitted int64 }

// ReadProgress reads a split as it stands in a checkpoint, among the elements of the
// source's state.
func ReadProgress(b []byte) (Progress, error) {
	s, err := parseSplit(b)
	return Progress{s.index, s.of, s.done}, err
}

// next is the number to emit next.
func (s *split) next() int64 { return s.index + s.done*s.of }

func (s *split) append(b []byte) []byte {
	b = append(b, splitVersion)
	b = binary.AppendUvarint(b, uint64(s.index))
	b = binary.AppendUvarint(b, uint64(s.of))
	return binary.AppendUvarint(b, uint64(s.done))
}

func parseSplit(b []byte) (split, error) {
	if len(b) == 0 || b[0] != splitVersion {
		return split{}, fmt.Errorf("%w: version missing or unknown", ErrBadSplit)
	}
	var v [3]uint64
	rest := b[1:]
	for i := range v {
		n, k := binary.Uvarint(rest)
		if k <= 0 {
			return split{}, fmt.Errorf("%w: cut short", ErrBadSplit)
		}
		v[i], rest = n, rest[k:]
	}
	if len(rest) != 0 || v[1] == 0 || v[1] > maxSplits || v[0] >= v[1] || v[2] > (math.MaxInt64-v[0])/v[1] {
		return split{}, fmt.Errorf("%w: split %d of %d at %d, %d bytes left", ErrBadSplit, v[0], v[1], v[2], len(rest))
	}
	return split{index: int64(v[0]), of: int64(v[1]), done: int64(v[2])}, nil
}
