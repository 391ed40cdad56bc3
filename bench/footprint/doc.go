// Command footprint reports what a small cluster of real processes costs: the time
// from starting a JobManager and two TaskManagers on empty directories until a job
// runs, their proportional share of memory (PSS) with the job idle, and the size of the
// binary.
//
// It owns the processes that it starts, which die with it. It must know only the
// commands of bin/weir. Nothing is judged.
//
//	make build && go run ./bench/footprint -weir bin/weir
//
// Goroutines: one a process, that waits for its first line. No locks. Read main.go.
package main
