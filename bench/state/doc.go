// Command state compares the heap backend with bare loops that do the same work
// on bare memory (DECISIONS 35).
//
// It owns the bars of keyed state: the synchronous part of a snapshot against one
// memcpy of the state, the extra CPU of a whole snapshot against copying the same
// pages, the batched lookup against a hand-written table. It must not know the
// insides of the backend; bare loops know nothing of it at all.
//
//	go run ./bench/state -pairs 11 -o json
//	go test ./bench/state -run NONE -bench .
//
// No goroutines. Read main.go, then bare.go.
package main
