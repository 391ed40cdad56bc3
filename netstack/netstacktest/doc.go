// Package netstacktest runs stacks over an in-memory network in tests.
//
// It owns the stacks of one test and closes them at its end, when no buffer may be
// left in anybody's hands. It must not know tasks. Read netstacktest.go.
package netstacktest
