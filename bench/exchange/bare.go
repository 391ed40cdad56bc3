package main

import (
	"encoding/binary"
	"strings"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/weirflow/weir/bench/pairs"
)

const (
	segmentBytes  = 32 << 10
	queueSegments = 8
	// A record is its length, the key, a time and the body.
	recordBytes = 4 + keyBytes + 8 + bodyBytes
)

type segment struct {
	b [segmentBytes]byte
	n int
}

// loop is a source and two counters that hand each other segments.
type loop struct {
	made  *generator
	full  [counters]chan *segment
	empty [counters]chan *segment
	idle  chan struct{} // a counter has seen the end of a sample
}

// startLoop starts the counters.
func startLoop(keys uint64, count func() func(b []byte)) func(records int) pairs.Sample {
	l := &loop{made: newGenerator(keys), idle: make(chan struct{}, counters)}
	for i := range counters {
		l.full[i], l.empty[i] = make(chan *segment, queueSegments), make(chan *segment, queueSegments+2)
		for range cap(l.empty[i]) {
			l.empty[i] <- new(segment)
		}
		go l.consume(i, count())
	}
	l.run(warmUp(keys))
	return func(records int) pairs.Sample {
		return pairs.CPU(float64(records), func() { l.run(records) })
	}
}

func (l *loop) consume(i int, count func(b []byte)) {
	for s := range l.full[i] {
		if s.n == 0 {
			l.idle <- struct{}{}
		}
		count(s.b[:s.n])
		l.empty[i] <- s
	}
}

// run makes records and hands them over until the counters have them all.
func (l *loop) run(records int) {
	var open [counters]*segment
	for i := range open {
		open[i] = <-l.empty[i]
		open[i].n = 0
	}
	for range records {
		key, at := l.made.next()
		r := record{key, body}
		key = user.key(r)
		hash := xxh3.HashString(key)
		to := hash >> 63 // the upper half of the key groups is the second counter's
		s := open[to]
		if s.n+recordBytes > segmentBytes {
			l.full[to] <- s
			s = <-l.empty[to]
			s.n = 0
			open[to] = s
		}
		b := s.b[s.n : s.n+recordBytes]
		binary.LittleEndian.PutUint32(b, recordBytes-4)
		copy(b[4:], key)
		binary.LittleEndian.PutUint64(b[4+keyBytes:], uint64(at))
		copy(b[12+keyBytes:], r.Body)
		s.n += recordBytes
	}
	for i := range open {
		if open[i].n > 0 {
			l.full[i] <- open[i]
			open[i] = <-l.empty[i]
			open[i].n = 0
		}
		l.full[i] <- open[i]
	}
	for range counters {
		<-l.idle
	}
}

// decode reads a record, whose strings alias the segment.
func decode(b []byte) (r record, at int64, rest []byte) {
	end := 4 + binary.LittleEndian.Uint32(b)
	r.Key = text(b[4 : 4+keyBytes])
	at = int64(binary.LittleEndian.Uint64(b[4+keyBytes:]))
	r.Body = text(b[12+keyBytes : end])
	return r, at, b[end:]
}

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// tableCounter counts in a paged table, batch by batch.
func tableCounter() func(b []byte) {
	t := newTable()
	return func(b []byte) {
		var hashes [batchSize]uint64
		var rs [batchSize]record
		var at [batchSize]int64
		for len(b) > 0 {
			n := 0
			for ; n < batchSize && len(b) > 0; n++ {
				rs[n], at[n], b = decode(b)
				hashes[n] = xxh3.HashString(rs[n].Key)
			}
			t.touch(hashes[:n])
			for i := range n {
				user.add(t.value(hashes[i], rs[i].Key), at[i])
			}
		}
	}
}

// mapCounter counts in a map of pointers, record by record.
func mapCounter() func(b []byte) {
	m := make(map[string]*total)
	return func(b []byte) {
		for len(b) > 0 {
			var r record
			var at int64
			r, at, b = decode(b)
			t := m[r.Key]
			if t == nil {
				t = &total{}
				m[strings.Clone(r.Key)] = t
			}
			user.add(t, at)
		}
	}
}
