// Command chain measures what fusing costs: the chain source → map → filter → sink
// of package flow, against a loop that calls the same four functions through func
// values.
//
// It owns the two loops; it must not know a cluster: a chain is opened on an
// environment of its own and polled. The bar is that of the project: at most 2.5
// times the bare loop, and no allocation. No goroutines, no locks. Read subject.go.
package main
