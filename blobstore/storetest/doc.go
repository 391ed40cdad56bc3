// Package storetest is the contract suite of blobstore.Store: what every store must
// do. A store's tests call [Run]; nothing else imports it.
//
// It owns the tests; it must not know an implementation. Goroutines: those of its
// tests, through internal/group. Read storetest.go.
package storetest
