// Command transport measures the data path between two processes on one machine: a
// task that sends full segments, or records that it makes and the receiver counts,
// through two stacks and one gRPC stream.
//
// It owns the tasks and the bare loops, which do the same over a TCP connection by
// writev and know nothing of the engine. Each side is a process that receives and a
// child of it that sends.
//
//	go run ./bench/transport -run pure
//	go run ./bench/transport side -of stack -work count -samples 10 -profile cpu.out
//
// Goroutines: one sender and one receiver a side, and a reader of requests. No
// locks. Read main.go, then stack.go, then bare.go.
package main
