// Package linktest is the contract of link.Transport as tests.
//
// It owns nothing and knows no implementation. A package with an implementation
// calls [Run] from a test. No goroutine outlives a test. Read linktest.go.
package linktest
