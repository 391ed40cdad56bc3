package main

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

const (
	segmentBytes = 32704
	keyBytes     = 16
	valueBytes   = 84
	keys         = 100_000
)

// generator makes records of 100 bytes: a key of 16 letters and a value that begins
// with a number. Both sides use the same.
type generator struct {
	r      uint64
	n      uint64
	record [keyBytes + valueBytes]byte
}

func newGenerator() *generator { return &generator{r: 88172645463325252} }

// next makes the next record and the hash of its key.
func (g *generator) next() (hash uint64) {
	g.r ^= g.r << 13
	g.r ^= g.r >> 7
	g.r ^= g.r << 17
	g.n++
	x := g.r % keys * 0x9E3779B97F4A7C15
	binary.BigEndian.PutUint64(g.record[:], letters(uint32(x>>32)))
	binary.BigEndian.PutUint64(g.record[8:], letters(uint32(x)))
	binary.LittleEndian.PutUint64(g.record[keyBytes:], g.n)
	return xxh3.Hash(g.record[:keyBytes])
}

// letters makes a letter of each four bits.
func letters(v uint32) uint64 {
	e := uint64(v)
	e = (e | e<<16) & 0x0000ffff0000ffff
	e = (e | e<<8) & 0x00ff00ff00ff00ff
	e = (e | e<<4) & 0x0f0f0f0f0f0f0f0f
	return e + 0x6161616161616161
}

// total is what is kept of a key.
type total struct{ count, last uint64 }

// counter counts records by key.
type counter map[string]*total

func (c counter) add(record []byte) {
	t := c[string(record[:keyBytes])]
	if t == nil {
		t = new(total)
		c[string(record[:keyBytes])] = t
	}
	t.count++
	t.last = binary.LittleEndian.Uint64(record[keyBytes:])
}
