// Package debloat finds the size of segments with which what is in flight to a gate
// takes a wanted time to be consumed (behaviour §22).
//
// It owns [Meter], how fast a task consumes when it has something to consume, and
// [Calculator], the size that follows. It must not know buffers, channels or who
// measures.
//
// Every period the task asks its Meter for the throughput, gives it to the gate's
// Calculator together with the number of segments in flight, and tells the producers
// of a size that is to be announced.
//
// # Invariants
//
//  1. A size lies between the smallest and the largest, and at most doubles in one step.
//  2. The same size is not announced twice running.
//
// Plain values for one goroutine; no lock. Read calculator.go.
package debloat
