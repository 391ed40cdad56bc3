// Package jobmaster runs one job: it deploys its tasks, takes its checkpoints,
// restarts it after failures, and ends it.
//
// It owns [Core], everything that is decided about the job, and [JobMaster], the loop
// that owns a Core and carries out what it says. It must not know other jobs, who
// leads, or how messages travel.
//
// # Core
//
// Core composes the machines of execgraph, scheduling, checkpointing, failover and
// opcoord: what one says is told to the others in the same call, and what is left
// are actions for the loop. A job's tasks are (re)started in runs. A run of some
// regions of the graph goes
//
//	stopping   all attempts of the regions end, the restart's delay passes, and no
//	           link of the chain is being added
//	preparing  slots are granted, the latest snapshot is loaded, the coordinators of
//	           sources are started from it
//	deploying  every attempt has its deployment, with its share of the snapshot's
//	           state and in-flight data
//	running    all tasks run: checkpoints are taken
//
// and the next failure leads back to stopping. Files core*.go are pure: no goroutine,
// channel, lock, clock, context, logger or I/O.
//
// # Invariants
//
//  1. A new attempt of a subtask is deployed only after the old one has ended or its
//     TaskManager is lost.
//  2. A run starts from the newest completed checkpoint; while a link is being added
//     it is not known which one that is, so the run waits.
//  3. A failure while a run is stopping adds its region to the run and does not
//     count again. The failure that a job ends with is the first cause that is known.
//  4. An answer carries the run it belongs to; one of an earlier run has no effect.
//  5. A job ends once, when all its attempts have ended: FINISHED, CANCELED or FAILED.
//  6. A coordinator that hangs or panics harms its job only.
//
// # Goroutines
//
// job/<id> is the loop, and alone writes Core. coordinator/<op> runs the user's
// enumerator, one per source and run; hook/<name> a master hook, one per name and start
// of the whole job, hook.mu is a leaf. Blocking calls to storage run on the shared
// bounded [Pools]. They all post to the loop's inbox. job/cleanup tries deletions again
// that have failed, while there are any; leftovers.mu is a leaf. No other locks.
//
// Read core.go, core_deploy.go, core_failover.go, core_channels.go, then loop.go,
// effects.go, enumerator.go and hook.go;
// testdata tells whole lives of jobs.
package jobmaster
