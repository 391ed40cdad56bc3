// Command latency reports how long records take through three tasks at 10,000 records a
// second: a source, a map and a sink that exchange records over two TaskManagers of a
// cluster in this process.
//
// It owns the job and the statistics; it must not know how records travel. A record
// carries the time at which it was made. Nothing is judged.
//
// Goroutines: the cluster's. One lock guards the latencies. Read main.go.
package main
