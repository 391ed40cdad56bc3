package main

import (
	"github.com/zeebo/xxh3"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/statebackend"
)

const (
	batch   = 64
	batches = 20_000 // of a sample
)

// fillBatch draws uniform keys and hashes them, the same on all sides.
func fillBatch(r *random, hashes *[batch]uint64, names *[batch][keyBytes]byte) {
	for i := range hashes {
		hashes[i] = xxh3.Hash(makeKey(names[i][:], r.next()%keys))
	}
}

// heapCounter counts with Prefetch and Slot.
type heapCounter struct {
	table  statebackend.Table
	hashes [batch]uint64
	names  [batch][keyBytes]byte
	hints  [batch]statebackend.Hint
	r      random
}

func (c *heapCounter) run(n int) {
	for at := range n {
		fillBatch(&c.r, &c.hashes, &c.names)
		c.table.Prefetch(c.hashes[:], c.hints[:])
		for i, h := range c.hashes {
			v, _ := c.table.Slot(statebackend.Ref{Hash: h, Key: c.names[i][:]}, c.hints[i])
			addTo(v, int64(at))
		}
	}
}

// lookup compares the batched lookup with that of the bare table.
func lookup(minPairs int) pairs.Result {
	s := newState(128, keys, false)
	defer s.close()
	c := &heapCounter{table: s.count, r: seed}
	t := newBareTable()
	fillBare(t)
	r := seed
	var hashes [batch]uint64
	var names [batch][keyBytes]byte
	return pairs.Run("lookup/batched",
		func() pairs.Sample { return pairs.CPU(batch*batches, func() { c.run(batches) }) },
		func() pairs.Sample {
			return pairs.CPU(batch*batches, func() {
				for at := range batches {
					fillBatch(&r, &hashes, &names)
					t.count(&hashes, &names, int64(at))
				}
			})
		}, minPairs)
}

func fillBare(t *bareTable) {
	var key [keyBytes]byte
	for i := range keys {
		k := makeKey(key[:], uint64(i))
		addTo(t.value(xxh3.Hash(k), k), 0)
	}
}

// counter is the value of the map.
type counter struct{ count, at int64 }

// lookupMap compares the batched lookup with a Go map of pointers.
func lookupMap(minPairs int) pairs.Result {
	s := newState(128, keys, false)
	defer s.close()
	c := &heapCounter{table: s.count, r: seed}
	m := make(map[string]*counter)
	var key [keyBytes]byte
	for i := range keys {
		m[string(makeKey(key[:], uint64(i)))] = &counter{count: 1}
	}
	r := seed
	return pairs.Run("lookup/against-map",
		func() pairs.Sample { return pairs.CPU(batch*batches, func() { c.run(batches) }) },
		func() pairs.Sample {
			return pairs.CPU(batch*batches, func() {
				for at := range batches * batch {
					e := m[string(makeKey(key[:], r.next()%keys))]
					e.count++
					e.at = int64(at)
				}
			})
		}, minPairs)
}
