// Package flowtest runs one task of a job, or all of them, without a cluster, for
// tests of operators, sources and sinks.
//
// It owns [Task]: a chain with heap state, timers on a clock that the test moves,
// and outputs that remember what was emitted; and [Network]: all tasks of a job, and
// what goes from one to the other. It must not know how real tasks are scheduled: it
// makes the calls of operator.Chain and nothing else.
//
// A test opens a task by the name of any of its operators, feeds it, and looks:
//
//	source := flowtest.Open(t, job, nil, flowtest.At("numbers"))
//	source.Poll(100)
//	count := flowtest.Open(t, job, nil, flowtest.At("count"))
//	count.Feed(source.Emitted())
//
// A snapshot of one task can be given to the next one that is opened. [OpenAll] opens
// all tasks, and [Network.Run] has them exchange their records.
//
// No goroutines and no locks of its own. Read task.go first.
package flowtest
