// Command checkpoint measures how long a checkpoint takes that has nothing to wait for,
// beside the disk and the registry.
//
// It owns a cluster of real processes, a JobManager with its own etcd and two
// TaskManagers, with the demo's job (examples/checkpointdemo) and checkpoints in a
// directory, and the bare work. It must not know how a checkpoint is taken.
//
//	go run ./bench/checkpoint
//	go run ./bench/checkpoint steps          # where the time goes
//
// # How the bar is read
//
// A checkpoint of the demo's job, without back pressure, is asked for, and its own
// statistics say how long it took from the decider's decision to start it to the answer of
// the transaction that adds its link. Its state is small, so it lies in _metadata, and what
// the disk and the registry must do for a checkpoint is: a transaction that takes the id,
// a file that is written and synced, its name and its new directory, which are synced as well
// (two directories), and a transaction that adds the link.
//
// The bare work is the same by hand, one after the other, in the same directory and with
// an etcd of its own on the same disk: as many bytes as the _metadata has are written to a
// file in a new directory, which is synced, then both directories; and a key is changed twice,
// guarded by a leadership and the key's revision. Checkpoints and bare work alternate; cost is
// checkpoint ÷ bare, the median over the pairs, and the upper end of its interval
// must be at most 2.5.
//
// Goroutines: exec's. No locks. Read main.go, then bare.go.
package main
