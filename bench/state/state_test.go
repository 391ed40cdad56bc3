package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
)

func perRecord(b *testing.B, records int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
}

func BenchmarkLookupBatched(b *testing.B) {
	s := newState(128, keys, false)
	defer s.close()
	c := &heapCounter{table: s.count, r: seed}
	b.ReportAllocs()
	for b.Loop() {
		c.run(1)
	}
	perRecord(b, batch)
}

func BenchmarkLookupOneByOne(b *testing.B) {
	s := newState(128, keys, false)
	defer s.close()
	r := seed
	var key [keyBytes]byte
	b.ReportAllocs()
	for b.Loop() {
		k := makeKey(key[:], r.next()%keys)
		v, _ := s.count.Slot(statebackend.Ref{Hash: xxh3.Hash(k), Key: k}, statebackend.Hint{})
		addTo(v, 1)
	}
	perRecord(b, 1)
}

func BenchmarkLookupBare(b *testing.B) {
	t := newBareTable()
	fillBare(t)
	r := seed
	var hashes [batch]uint64
	var names [batch][keyBytes]byte
	b.ReportAllocs()
	for b.Loop() {
		fillBatch(&r, &hashes, &names)
		t.count(&hashes, &names, 1)
	}
	perRecord(b, batch)
}

func BenchmarkPutVariable(b *testing.B) {
	s := newState(128, 0, false)
	defer s.close()
	text, err := s.b.Table(statebackend.Descriptor{Name: "text"})
	must(err)
	r := seed
	var key [keyBytes]byte
	values := [4][]byte{make([]byte, 24), make([]byte, 30), make([]byte, 70), make([]byte, 28)}
	put := func() {
		x := r.next()
		k := makeKey(key[:], x%100_000)
		text.Put(statebackend.Ref{Hash: xxh3.Hash(k), Key: k}, statebackend.Hint{}, values[x>>40&3])
	}
	for range 1_000_000 {
		put()
	}
	b.ReportAllocs()
	for b.Loop() {
		put()
	}
}

func BenchmarkTimerRegisterAndDelete(b *testing.B) {
	s := newState(128, 0, false)
	defer s.close()
	var key [keyBytes]byte
	var at [8]byte
	const ahead = 10_000
	timer := func(n uint64) statebackend.Ref {
		binary.BigEndian.PutUint64(at[:], n)
		k := makeKey(key[:], n%16)
		return statebackend.Ref{Hash: xxh3.Hash(k), Key: k, Namespace: at[:]}
	}
	n := uint64(0)
	step := func() {
		s.timers.Slot(timer(n), statebackend.Hint{})
		if n >= ahead {
			s.timers.Delete(timer(n - ahead))
		}
		n++
	}
	for range 10 * ahead {
		step()
	}
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}

func BenchmarkSnapshotSync(b *testing.B) {
	s := newState(128, keys, true)
	defer s.close()
	b.ReportAllocs()
	for b.Loop() {
		snap, err := s.b.Snapshot()
		must(err)
		snap.Release()
	}
}

func BenchmarkSnapshotWrite(b *testing.B) {
	s := newState(128, keys, true)
	defer s.close()
	snap, err := s.b.Snapshot()
	must(err)
	defer snap.Release()
	b.SetBytes(int64(s.bytes()))
	b.ReportAllocs()
	for b.Loop() {
		_, err := snap.Write(context.Background(), discard{})
		must(err)
	}
}

func BenchmarkRestore(b *testing.B) {
	s := newState(128, keys, true)
	snap, err := s.b.Snapshot()
	must(err)
	var stream bytes.Buffer
	_, err = snap.Write(context.Background(), &stream)
	must(err)
	snap.Release()
	s.close()
	kg := weir.KeyGroupRange{First: 0, Last: 127}
	handles := []weir.KeyedStateHandle{{Range: kg, Backend: heap.Name, Handle: weir.StateHandle{Inline: stream.Bytes()}}}
	open := func(context.Context, weir.StateHandle) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(stream.Bytes())), nil
	}
	b.ReportAllocs()
	for b.Loop() {
		back, err := heap.NewFactory(s.pool).New(statebackend.Options{MaxParallelism: 128, KeyGroups: kg})
		must(err)
		must(back.Restore(context.Background(), handles, open))
		must(back.Close())
	}
	perRecord(b, 2*keys)
}

// Both sides of a comparison must do the same work.
func TestBareTableCountsAsTheBackendDoes(t *testing.T) {
	const n = 200
	s := newState(128, 0, false)
	defer s.close()
	c := &heapCounter{table: s.count, r: seed}
	c.run(n)
	bare := newBareTable()
	r := seed
	var hashes [batch]uint64
	var names [batch][keyBytes]byte
	for at := range n {
		fillBatch(&r, &hashes, &names)
		bare.count(&hashes, &names, int64(at))
	}
	entries, total := 0, uint64(0)
	s.count.Scan(func(_ weir.KeyGroup, key, _, value []byte) bool {
		entries++
		total += binary.LittleEndian.Uint64(value)
		if got := bare.value(xxh3.Hash(key), key); !bytes.Equal(got, value) {
			t.Fatalf("%s: bare loop has %v, backend %v", key, got, value)
		}
		return true
	})
	inBare := 0
	for i := range bare.groups {
		inBare += bare.groups[i].n
	}
	if inBare != entries || total != n*batch {
		t.Errorf("bare loop has %d entries, backend %d with %d counts, want %d", inBare, entries, total, n*batch)
	}
}

func TestTouchesReachEveryPage(t *testing.T) {
	s := newState(7, 50_000, true)
	defer s.close()
	before := s.pool.Stats().InUse
	snap, err := s.b.Snapshot()
	must(err)
	for _, r := range touches(s.count, 51) {
		s.count.Slot(r, statebackend.Hint{})
	}
	for _, r := range touches(s.timers, 51) {
		if _, created := s.timers.Slot(r, statebackend.Hint{}); created {
			t.Fatal("a timer was made")
		}
	}
	// Spare pages at hand count as in use: one refill at most on either side.
	if copied := s.pool.Stats().InUse - before; copied < before*95/100 {
		t.Errorf("%d of %d pages were copied", copied, before)
	}
	snap.Release()
}

func TestBareCopyKeepsThePages(t *testing.T) {
	b := newBarePages(300)
	want := *b.pages[299]
	b.copyAll()
	if *b.pages[299] != want || *b.recycled[299] != want || b.sum == 0 {
		t.Error("pages differ after the copy")
	}
}
