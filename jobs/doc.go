// Package jobs lists the jobs that the shipped binary carries.
//
// It owns the list; it must not know what becomes of it. Users' binaries have lists
// of their own and call daemon.Main with them. No goroutines, no locks. Read
// jobs.go.
package jobs
