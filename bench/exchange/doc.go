// Command exchange measures a whole keyed job: records of about 100 bytes with
// string keys of 16 go from a source through a local exchange to two subtasks that
// count them for each key.
//
// It owns the job, which runs on a real cluster in the process (package
// minicluster), and the bare loops of the same shape: generate, serialize, hand
// segments over a channel, decode, look up in batches and count. One of the loops
// counts in paged tables without pointers, the other in a map[string]*T. They know
// nothing of the engine. Each side runs in a process of its own and counts what that
// process used of the CPU.
//
//	go run ./bench/exchange -run keys=100000
//	go run ./bench/exchange side -of job -keys 1000000 -samples 10 -profile cpu.out
//
// Goroutines: one source and two counters in the bare loops, without locks. Read
// main.go, then job.go, then bare.go.
package main
