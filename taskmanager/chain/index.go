package chain

import "bytes"

// index is a heap of timers by time. Its entries have no pointers: their keys lie one
// after another in one slice, which is rewritten when more than half of it is unused.
type index struct {
	heap   []entry
	keys   []byte
	spare  []byte // the slice before the last rewrite, to write the next one to
	unused int    // bytes of keys that no entry refers to
}

// entry is a timer in the index.
type entry struct {
	at   int64
	hash uint64
	off  int // of its key in keys
	n    int // length of its key
}

func (x *index) len() int     { return len(x.heap) }
func (x *index) empty() bool  { return len(x.heap) == 0 }
func (x *index) first() entry { return x.heap[0] }

func (x *index) clear() {
	x.heap, x.keys, x.unused = x.heap[:0], x.keys[:0], 0
}

func (x *index) push(hash uint64, key []byte, at int64) {
	e := entry{at: at, hash: hash, off: len(x.keys), n: len(key)}
	x.keys = append(x.keys, key...)
	x.heap = append(x.heap, e)
	x.up(len(x.heap) - 1)
}

// pop removes the first entry and appends its key to dst.
func (x *index) pop(dst []byte) (entry, []byte) {
	e, last := x.heap[0], len(x.heap)-1
	dst = append(dst, x.key(e)...)
	x.heap[0] = x.heap[last]
	x.heap = x.heap[:last]
	x.down(0)
	x.unused += e.n
	if x.unused > 4096 && 2*x.unused > len(x.keys) {
		x.rewrite()
	}
	return e, dst
}

func (x *index) key(e entry) []byte { return x.keys[e.off : e.off+e.n] }

func (x *index) rewrite() {
	to := x.spare[:0]
	for i := range x.heap {
		e := &x.heap[i]
		off := len(to)
		to = append(to, x.key(*e)...)
		e.off = off
	}
	x.keys, x.spare, x.unused = to, x.keys, 0
}

func (x *index) less(a, b entry) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.hash != b.hash {
		return a.hash < b.hash
	}
	return bytes.Compare(x.key(a), x.key(b)) < 0
}

func (x *index) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !x.less(x.heap[i], x.heap[parent]) {
			return
		}
		x.heap[i], x.heap[parent] = x.heap[parent], x.heap[i]
		i = parent
	}
}

func (x *index) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(x.heap) {
			return
		}
		if right := child + 1; right < len(x.heap) && x.less(x.heap[right], x.heap[child]) {
			child = right
		}
		if !x.less(x.heap[child], x.heap[i]) {
			return
		}
		x.heap[i], x.heap[child] = x.heap[child], x.heap[i]
		i = child
	}
}
