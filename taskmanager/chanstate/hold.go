package chanstate

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// blockSize is the unit in which captured bytes are copied.
const blockSize = 32 << 10

var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// hold is what a subtask has captured for a checkpoint. One goroutine at a time has it:
// callers of the subtask, under the group's lock, until it is put, then the writer.
type hold struct {
	ends  []end
	index map[endKey]int // of ends
	// blocks are full but for the last one, which is filled up to used.
	blocks []*[blockSize]byte
	used   int
}

// end is what was captured of one end of one channel.
type end struct {
	endKey
	chunks []chunk
}

type endKey struct {
	side               weir.ChannelSide
	edge               weir.EdgeID
	producer, consumer int32
}

type chunk struct {
	base int64
	b    []byte // in a block
}

func (k endKey) compare(l endKey) int {
	return cmp.Or(
		cmp.Compare(k.side, l.side), cmp.Compare(k.edge.From, l.edge.From), cmp.Compare(k.edge.To, l.edge.To),
		cmp.Compare(k.edge.Input, l.edge.Input), cmp.Compare(k.producer, l.producer), cmp.Compare(k.consumer, l.consumer),
	)
}

// label is for people who look into the file.
func (k endKey) label() string {
	side := "in"
	if k.side == weir.ProducerSide {
		side = "out"
	}
	return fmt.Sprintf("%s->%s/%d %d->%d %s", k.edge.From, k.edge.To, k.edge.Input, k.producer, k.consumer, side)
}

// add copies bytes behind those captured of the same end. Bytes that cross a block become
// two chunks of the same base, which mean the same.
func (h *hold) add(k endKey, base int64, b []byte) {
	i, ok := h.index[k]
	if !ok {
		if h.index == nil {
			h.index = map[endKey]int{}
		}
		i = len(h.ends)
		h.index[k] = i
		h.ends = append(h.ends, end{endKey: k})
	}
	for len(b) > 0 {
		if len(h.blocks) == 0 || h.used == blockSize {
			h.blocks = append(h.blocks, blocks.Get().(*[blockSize]byte))
			h.used = 0
		}
		block := h.blocks[len(h.blocks)-1]
		n := copy(block[h.used:], b)
		h.ends[i].chunks = append(h.ends[i].chunks, chunk{base, block[h.used : h.used+n]})
		h.used += n
		b = b[n:]
	}
}

// sort orders the ends, so that equal captures make equal files.
func (h *hold) sort() {
	slices.SortFunc(h.ends, func(a, b end) int { return a.compare(b.endKey) })
}

// free gives the blocks back.
func (h *hold) free() {
	for _, b := range h.blocks {
		if assert.Enabled {
			for i := range b {
				b[i] = 0xdb
			}
		}
		blocks.Put(b)
	}
	*h = hold{}
}
