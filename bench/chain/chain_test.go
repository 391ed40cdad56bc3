package main

import "testing"

func BenchmarkSubject(b *testing.B) {
	s := openSubject()
	defer s.close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.chain.Poll(pollSize); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pollSize, "ns/record")
}

func BenchmarkBare(b *testing.B) {
	b.ReportAllocs()
	var n int64
	for b.Loop() {
		n = loop(funcs, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
}

// TestChainDoesWhatTheLoopDoes compares the two results, so that neither can be fast
// by leaving something out.
func TestChainDoesWhatTheLoopDoes(t *testing.T) {
	s := openSubject()
	defer s.close()
	total = 0
	s.sample()
	got := total
	total = 0
	loop(funcs, 0)
	if got != total {
		t.Errorf("chain %d, loop %d", got, total)
	}
}
