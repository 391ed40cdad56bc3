package main

// record is what goes through the chain.
type record struct{ Key, Time, Value int64 }

// The user's functions, the same for subject and bare loop. They are not inlined in
// either.

//go:noinline
func newRecord(n int64) record { return record{Key: n * 0x9e3779b9 & 0xffff, Time: n, Value: n} }

//go:noinline
func scale(r record) record { r.Value = r.Value*2 + 1; return r }

//go:noinline
func keep(r record) bool { return r.Key&7 != 7 }

// total keeps the sink from being nothing.
var total int64

//go:noinline
func add(_ int64, r record) error { total += r.Value + r.Time; return nil }
