// Package hatest is the contract suite of ha.Registry: what every registry must do,
// and that a JobStore on it keeps its promises. A registry's tests call [Run] with a
// [System]; nothing else imports it.
//
// It owns the tests; it must not know an implementation. Goroutines: those of its
// tests, through internal/group. Read system.go.
package hatest
