// Package sim is the simulated cluster: the real JobManager and TaskManagers, with
// all their goroutines, live in one testing/synctest bubble under one seed.
//
// It owns the [World], which stands between the processes and everything outside of
// them: the data network (link.Transport), the control plane (rpc.Dialer), durable
// bytes (blobstore.Store), local files (localfs.FS) and the registry (ha.Registry).
// It must not know how the processes work: it sees what passes the five seams.
//
// # A life
//
// A seed draws a [Plan]: the job's shape, pool sizes, intervals, which faults occur and
// how often. Then the world, on the bubble's root goroutine, repeats: wait until every
// goroutine is durably blocked; list what could happen next (deliver the head of a
// link, answer a call of a disk or of the registry, let time pass, do or heal a
// fault); let the seed choose; do it. In the first phase faults occur and only safety
// is asked for. In the second everything is healed, and the job must reach its end
// within a bound of simulated time. Then it is cancelled, and nothing of it may be left.
// A second job, of other parallelisms and chains, starts from its last checkpoint and
// must end too, by itself in half of the lives. Then everything stops.
//
// The job counts numbered records by key. Its answer has a closed form for every
// vector of positions of its sources, so that not only the last but each completed
// checkpoint is checked by itself ([Oracle]): what its counters hold is what lies before
// the positions in the same checkpoint.
//
// Three of five seeds run a random graph (package randomjob) as up to three jobs, each but
// the first from a checkpoint of the first (graph.go). There the closed form holds for
// what was counted together with what was in flight.
//
// # Running it
//
//	go test ./sim                            a few seeds
//	WEIR_SEEDS=200 go test -tags invariants ./sim
//	WEIR_SEED=17 go test -v ./sim            one seed, with its trace
//
// A seed that fails prints the command that repeats it, its plan and the end of its
// trace.
//
// What a seed determines: the plan; what processes draw, such as ids and pauses; and the
// world's answer to each question, that is, to a simulated time, who is up, what could
// happen next, and in which moment of a checkpoint's life (question.go). It does not
// determine which of two goroutines goes first that are awake in the same step: Go's
// scheduler does. Two lives of a seed are the same until such a race is decided otherwise,
// often to their end, and part with a step that was asked something else; never does one
// question get two answers (TestASeedAnswersAQuestionAlways). So a failure may need a few
// lives to be seen again, and a trace is the full account of one.
//
// # The trace
//
// A line is the simulated time since the start, what was chosen, and to whom it
// happened:
//
//	1.204s  deliver   tm-0>tm-1#2 x3        three frames of a data connection
//	1.204s  control   jm-0>tm-1#4 TriggerCheckpoint 7
//	1.207s  disk      tm-1 commit <job>/chk-7/… ok
//	1.207s  registry  jm-0 txn lost         applied, but the answer was lost
//	1.210s  fault     kill tm-1 (pending 7)
//	1.210s  link      checkpoint 7 of the chain
//
// # Invariants
//
//  1. Only the root goroutine chooses, by the seed and what is asked alone; a seam's call
//     waits for its verdict.
//  2. A link delivers in order; a fault cuts or stalls it, and never reorders it.
//  3. A killed process has no effect on anything any more, in the step of its kill.
//
// Goroutines: one per client's call and per process that is ending, in the world's
// group. World.mu is a leaf, held over no call. Read faults.go, world.go, oracle.go.
package sim
