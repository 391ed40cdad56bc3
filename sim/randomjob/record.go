package randomjob

import (
	"bytes"
	"fmt"
)

// Record is what flows: it says where it came from, and where it has been.
type Record struct {
	ID   uint64
	Key  int64
	Hops uint64 // a hash of the vertices that it has passed
	Copy bool   // it was broadcast, and all but one of its receivers drop it
	Drop bool
	Pad  []byte // a function of ID
}

// mix is a hash of two numbers.
func mix(a, b uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 + b + 0x632BE59BD9B4E019
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// newRecord is record n of a source.
func (p Params) newRecord(source int, n int64) Record {
	r := Record{ID: mix(uint64(source), uint64(n))}
	return p.hop(p.pad(r), uint64(source))
}

// hop is the record after it passed a place.
func (p Params) hop(r Record, place uint64) Record {
	r.Hops = mix(r.Hops, place)
	r.Key = int64(mix(r.Hops, r.ID) % uint64(p.Keys))
	return r
}

// padBytes is the length of a record's pad: few are large.
func (p Params) padBytes(id uint64) int {
	h := mix(id, 3)
	if p.Large > 0 && h%64 == 0 {
		return int(p.Large)
	}
	return int(h % uint64(p.Size+1))
}

func (p Params) pad(r Record) Record {
	r.Pad = make([]byte, p.padBytes(r.ID))
	for i := range r.Pad {
		r.Pad[i] = byte(r.ID) + byte(i)
	}
	return r
}

// check compares a record with what it must be.
func (p Params) check(r Record) error {
	if want := p.pad(Record{ID: r.ID}); r.Copy || r.Drop || !bytes.Equal(r.Pad, want.Pad) ||
		r.Key != int64(mix(r.Hops, r.ID)%uint64(p.Keys)) {
		return fmt.Errorf("record %x is damaged: key %d, hops %x, copy %v, drop %v, %d bytes", r.ID, r.Key, r.Hops, r.Copy, r.Drop, len(r.Pad))
	}
	return nil
}

// apply is what a vertex does to a record of a port.
func (n *Node) apply(p Params, port int, r Record, main, side func(Record)) {
	r = p.hop(r, n.place(port))
	choice := mix(r.ID, n.place(port))
	if n.Tail {
		next := main
		main = func(r Record) { next(p.hop(r, n.place(7))) }
	}
	switch n.Kind {
	case Filter:
		if choice%4 != 0 {
			main(r)
		}
	case Process, CoProcess:
		if choice%3 == 0 {
			side(r)
		} else {
			main(r)
		}
	case FlatMap, CoFlatMap:
		for i := range choice % 3 {
			c := r
			c.ID = mix(r.ID, i)
			main(p.hop(p.pad(c), i))
		}
	default:
		main(r)
	}
}

// place names an input of a vertex, in a record's hops.
func (n *Node) place(port int) uint64 { return uint64(n.Index*8 + port + 100) }

// Tally is what is kept for each key.
type Tally struct {
	Count int64
	Sum   uint64
}

// add counts a record.
func (t *Tally) add(r Record) {
	t.Count++
	t.Sum += mix(r.ID, r.Hops)
}
