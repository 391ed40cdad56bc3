package main

import (
	"encoding/binary"
	"strings"
	"unsafe"
)

const (
	keyBytes  = 16
	bodyBytes = 76
	counters  = 2 // subtasks that count
)

// body is the same in all records.
var body = strings.Repeat("0123456789abcdef", 5)[:bodyBytes]

// random is a xorshift generator.
type random uint64

const seed random = 88172645463325252

func (r *random) next() uint64 {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = random(x)
	return x
}

// record is what a source emits, with a time: about 100 bytes on the wire.
type record struct {
	Key  string
	Body string
}

// total is the state of a key.
type total struct{ Count, At int64 }

// user holds the user's functions, the same for job and loops, as a program does that
// learns them at run time. They are not inlined in either.
var user = &struct {
	key func(record) string
	add func(*total, int64)
}{keyOf, add}

//go:noinline
func keyOf(r record) string { return r.Key }

//go:noinline
func add(t *total, at int64) { t.Count++; t.At = at }

// keyBlock is how many keys a generator cuts from one string.
const keyBlock = 1024

// generator makes records with uniformly random keys. Job and loops use the same.
type generator struct {
	keys  uint64
	r     random
	at    int64
	block string
}

func newGenerator(keys uint64) *generator { return &generator{keys: keys, r: seed} }

// next makes the key and the time of a record.
//
//go:noinline
func (g *generator) next() (key string, at int64) {
	if len(g.block) == 0 {
		g.fill()
	}
	key = g.block[:keyBytes]
	g.block = g.block[keyBytes:]
	g.at++
	return key, g.at
}

// fill makes the next keys. They may be kept for ever, as all that a source emits.
func (g *generator) fill() {
	b := make([]byte, 0, keyBlock*keyBytes)
	for range keyBlock {
		x := g.r.next() % g.keys * 0x9E3779B97F4A7C15
		b = binary.BigEndian.AppendUint64(b, letters(uint32(x>>32)))
		b = binary.BigEndian.AppendUint64(b, letters(uint32(x)))
	}
	g.block = unsafe.String(unsafe.SliceData(b), len(b)) // b is not written again
}

// letters makes a letter of each four bits.
func letters(v uint32) uint64 {
	e := uint64(v)
	e = (e | e<<16) & 0x0000ffff0000ffff
	e = (e | e<<8) & 0x00ff00ff00ff00ff
	e = (e | e<<4) & 0x0f0f0f0f0f0f0f0f
	return e + 0x6161616161616161
}
