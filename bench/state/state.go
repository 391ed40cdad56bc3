package main

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
)

// pageBytes is the size of the pages that the bare loops copy, as the backend's.
const pageBytes = 4096

// state is a backend with a Value state of 16 bytes and a timer for each key.
type state struct {
	pool   *heap.PagePool
	b      statebackend.Backend
	count  statebackend.Table
	timers statebackend.Table
}

// newState fills a state. Its pool is large enough to recycle every page.
func newState(keyGroups, keys int, withTimers bool) *state {
	s := &state{pool: heap.NewPagePool(1 << 30)}
	var err error
	s.b, err = heap.NewFactory(s.pool).New(statebackend.Options{
		MaxParallelism: keyGroups, KeyGroups: weir.KeyGroupRange{First: 0, Last: int32(keyGroups - 1)},
	})
	must(err)
	s.count, err = s.b.Table(statebackend.Descriptor{Name: "count", FixedSize: 16})
	must(err)
	s.timers, err = s.b.Table(statebackend.Descriptor{Name: "timers", FixedSize: 1})
	must(err)
	var key [keyBytes]byte
	var at [8]byte
	for i := range keys {
		ref := statebackend.Ref{Key: makeKey(key[:], uint64(i))}
		ref.Hash = xxh3.Hash(ref.Key)
		v, _ := s.count.Slot(ref, statebackend.Hint{})
		v[0] = 1
		if withTimers {
			binary.BigEndian.PutUint64(at[:], uint64(i))
			ref.Namespace = at[:]
			s.timers.Slot(ref, statebackend.Hint{})
		}
	}
	return s
}

// bytes are those of the state's pages.
func (s *state) bytes() int { return int(s.pool.Stats().InUse) * pageBytes }

func (s *state) close() { must(s.b.Close()) }

// touches are entries such that every page of a table holds at least one: each
// stride-th in the order of pages, with stride less than a page's entries.
func touches(t statebackend.Table, stride int) []statebackend.Ref {
	var refs []statebackend.Ref
	n, last := 0, weir.KeyGroup(0)
	t.Scan(func(group weir.KeyGroup, key, namespace, _ []byte) bool {
		if group != last {
			n, last = 0, group
		}
		if n%stride == 0 {
			names := append(append(make([]byte, 0, len(key)+len(namespace)), key...), namespace...)
			refs = append(refs, statebackend.Ref{Hash: xxh3.Hash(key), Key: names[:len(key):len(key)], Namespace: names[len(key):]})
		}
		n++
		return true
	})
	return refs
}

const keyBytes = 16

// makeKey writes 16 hexadecimal digits that belong to x.
func makeKey(b []byte, x uint64) []byte {
	const digits = "0123456789abcdef"
	x *= 0x9e3779b97f4a7c15
	for i := range keyBytes {
		b[i] = digits[x>>(60-4*i)&15]
	}
	return b[:keyBytes]
}

// random is a xorshift generator: cheap, and the same numbers on both sides.
type random uint64

func (r *random) next() uint64 {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = random(x)
	return x
}

const seed random = 88172645463325252

func must(err error) {
	if err != nil {
		panic(err)
	}
}
