package main

import "github.com/weirflow/weir/bench/pairs"

// records is the number of records of one sample.
const records = 8 << 20

// bare holds the functions as a program would that learns them at run time.
type bare struct {
	source func(int64) record
	scale  func(record) record
	keep   func(record) bool
	sink   func(int64, record) error
}

// funcs is a variable so that the compiler cannot know what it holds.
var funcs = &bare{newRecord, scale, keep, add}

func bareSample() pairs.Sample {
	var next int64
	return pairs.CPU(records, func() { next = loop(funcs, next) })
}

//go:noinline
func loop(b *bare, n int64) int64 {
	for range records {
		r := b.scale(b.source(n))
		if b.keep(r) {
			if err := b.sink(n, r); err != nil {
				panic(err)
			}
		}
		n++
	}
	return n
}
