// Package minicluster is a whole cluster in one process: a real JobManager, real
// TaskManagers, real time; only the wires are memory.
//
// It owns their assembly, and what tests of jobs need: [Run], which runs a job to
// its end, and [Collector], a sink that keeps what it got. It must not know what the
// parts decide, and is no place for faults: that is package sim's.
//
// A test of a job:
//
//	func TestWords(t *testing.T) {
//		var out minicluster.Collector[string]
//		job := flow.Define("words", func(g *flow.Graph, _ struct{}) error {
//			...
//			flow.To(words, "out", out.Sink())
//			return nil
//		})
//		minicluster.Run(t, job, minicluster.JobOptions{})
//		... out.Values() ...
//	}
//
// For more, [New] a [Cluster], start it, talk to its [Cluster.Gateway], stop it.
//
// Invariants:
//
//  1. Start is all or nothing; Stop is idempotent, works after half a start, and
//     returns when nothing of the cluster runs any more.
//  2. A file of a checkpoint outlives the cluster only if Options.Dir or
//     Options.Store say where.
//
// Goroutines: those of the parts, and the sessions'. Cluster.mu guards which
// TaskManagers there are and is held over no call. Read cluster.go, then run.go.
package minicluster
