// Package processes runs a cluster of real processes for a benchmark, and a registry
// beside it for the bare work.
//
// It owns [Cluster], this binary again as a JobManager with its own etcd and as
// TaskManagers, and [Registry], an etcd of the same options in which a key is changed
// under guard. It must not know what is measured.
//
// A program that is called with the role of a daemon as its first argument becomes that
// daemon, starts a cluster, asks through [Cluster.Client], and stops it. Daemons die with
// their parent, and leave nothing behind.
//
// Goroutines: exec's and etcd's. No locks. Read cluster.go.
package processes
