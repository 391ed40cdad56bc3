// Package taskmanager runs the subtasks of jobs in one process.
//
// It owns the slots, the attempts that run in them and the session with the
// JobManager. It must not know how a job is planned, how bytes travel or what a
// job's code does.
//
// A process makes one TaskManager with [New] and starts it. From then on it keeps a
// session with the leading JobManager: it registers, is told to deploy attempts, and
// reports their states. [TaskManager.Close] cancels what runs and waits for it.
//
// # How an attempt lives
//
//	Deploy           a slot is taken; lifecycle says Start
//	task/<vertex>[i] builds the program off the loop, with a deadline; compares the
//	                 graph's hash; opens its inputs and outputs; restores; runs
//	final state      reported, and again after each reconnect, until Forget
//
// # Invariants
//
//  1. A message of an epoch older than the newest that was registered, or for an
//     attempt that is not here, has no effect but a refusal (DECISIONS 6).
//  2. When a newer leader registers us, what runs for older ones is cancelled
//     (DECISIONS 30).
//  3. A slot is free again only after its attempts have given everything back. An
//     attempt is started once, however often its deployment comes.
//  4. Exactly one final state of an attempt is reported (lifecycle).
//  5. Tasks outlive the session: they run on for [Options.GraceTime] without a
//     JobManager, then they fail.
//  6. A fault of one attempt harms no other: builders and user code run on the
//     attempt's goroutines, with deadlines.
//
// # Goroutines
//
// tm/loop owns the slot table, the task table and the session; everybody else posts
// events to it. tm/dial dials. task/<vertex>[i]#n runs an attempt, tm/build builds
// a program, snapshot/worker writes snapshots. inbox.mu is a leaf.
//
// Read taskmanager.go, then loop.go, session.go, deploy.go.
package taskmanager
