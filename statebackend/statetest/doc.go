// Package statetest is the contract suite of keyed state backends.
//
// It owns what every implementation of statebackend.Backend is held to; it must
// not know any implementation. A backend's test calls [Run] with a function that
// makes a [Subject]; each test makes its own, and at the end everything taken from
// it must have been given back.
//
// Invariants: no test depends on the wall clock; what is compared is compared
// with a map. Goroutines are started for the asynchronous part of snapshots only,
// through internal/group. Read suite.go first.
package statetest
