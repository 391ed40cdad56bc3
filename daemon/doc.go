// Package daemon assembles a process: a JobManager, a TaskManager, both in one, or
// a command, from one binary.
//
// It owns configuration beyond flags, logging, the metrics endpoint, signals, the
// identity of a TaskManager, and the wiring of every seam to its real
// implementation: gRPC, etcd, the file system. It must not know what any of them
// decide. Users call [Main] with their jobs:
//
//	func main() { daemon.Main(wordcount.Job) }
//
// Invariants:
//
//  1. A role starts all of its parts or none, and stops them in reverse order, also
//     after half a start.
//  2. Nothing listens beyond loopback in plaintext unless --insecure says so.
//  3. The address that is printed and advertised is the one that got bound.
//
// Goroutines: servers, in one group per role. No locks but those that
// open a store once. Read main.go, then jobmanager.go and taskmanager.go.
package daemon
