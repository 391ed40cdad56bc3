package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/statebackend"
)

// syncPart compares Snapshot with one memcpy of the state, on the wall clock.
// Entries change between the samples, so that there is something to capture.
func syncPart(name string, keyGroups, minPairs int) pairs.Result {
	s := newState(keyGroups, keys, true)
	defer s.close()
	refs := touches(s.count, 51)
	size := s.bytes()
	from, to := make([]byte, size), make([]byte, size)
	for i := range from {
		from[i], to[i] = byte(i), 1 // real memory on both sides
	}
	subject := func() pairs.Sample {
		for _, r := range refs {
			s.count.Slot(r, statebackend.Hint{})
		}
		var snap statebackend.Snapshot
		var err error
		sample := pairs.Wall(1, func() { snap, err = s.b.Snapshot() })
		must(err)
		snap.Release()
		return sample
	}
	bare := func() pairs.Sample { return pairs.Wall(1, func() { copy(to, from) }) }
	r := pairs.Run(name, subject, bare, minPairs).CostAtMost(0.1)
	r.Note = fmt.Sprintf("%d keys with a value and a timer each, %d MB of pages", keys, size/1_000_000)
	return r
}

// extraCPU compares what a whole snapshot costs, every page written once while it
// is outstanding, with copying as many pages twice. The same writes without a
// snapshot are measured beside it and taken off.
func extraCPU(name string, keyGroups, minPairs int) pairs.Result {
	s := newState(keyGroups, keys, true)
	defer s.close()
	count, timers := touches(s.count, 51), touches(s.timers, 51)
	pages := int(s.pool.Stats().InUse)
	b := newBarePages(pages)
	write := func() {
		for _, r := range count {
			v, _ := s.count.Slot(r, statebackend.Hint{})
			v[0]++
		}
		for _, r := range timers {
			v, _ := s.timers.Slot(r, statebackend.Hint{})
			v[0]++
		}
	}
	var copied int
	subject := func() pairs.Sample {
		runtime.GC()
		alone := pairs.CPU(1, write)
		with := pairs.CPU(1, func() {
			snap, err := s.b.Snapshot()
			must(err)
			before := s.pool.Stats().InUse
			write()
			copied = int(s.pool.Stats().InUse - before)
			_, err = snap.Write(context.Background(), discard{})
			must(err)
			snap.Release()
		})
		with.Cost -= alone.Cost
		with.Allocs -= alone.Allocs
		return with
	}
	bare := func() pairs.Sample {
		runtime.GC()
		return pairs.CPU(1, b.copyAll)
	}
	r := pairs.Run(name, subject, bare, minPairs).CostAtMost(2)
	r.Note = fmt.Sprintf("%d pages, %d of them copied on write", pages, copied)
	return r
}

// discard takes bytes and does nothing with them.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
