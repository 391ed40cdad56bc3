// Package metrics counts what operators of a cluster want to see.
//
// It owns the names, units and labels of every metric of a process (docs/metrics.md
// lists them) and the one private Prometheus registry of that process. It must not
// know what the figures mean or who produces them.
//
// A daemon makes one [Registry] and serves [Registry.Handler]. A JobManager takes a
// [Job] for each job and reports events to it. A TaskManager adds a [Task] for each
// attempt, with a function that reads the attempt's figures: it is called when
// somebody scrapes, so that nothing on the path of a record knows Prometheus; a
// [Counter] is all that such a path needs. A job's user code gets counters and gauges
// from [Task.Operator]. When a job has gone, [Registry.Forget] removes its series.
//
//	reg := metrics.New(metrics.Build{Role: "taskmanager", Version: v, CodeID: id})
//	task := reg.AddTask(labels, attempt.figures)
//	defer task.Remove()
//
// Invariants:
//
//  1. No two series with the same labels exist: a new attempt of a subtask takes the
//     place of the older one, whose Remove then does nothing.
//  2. After Forget no series of the job is left, and none comes back through handles
//     that are still held.
//  3. No user's choice of names can make a scrape fail.
//
// No goroutines. Registry.mu and Task.mu are leaves; neither is held while a
// figures function runs. Read registry.go, then task.go.
package metrics
