// Package randomjob draws jobs of all shapes, of which the answer is known.
//
// It owns the job "random-graph": one to six vertices of parallelism 1 to 4, all kinds
// of operators and edges, unions, connected streams and side outputs, with records
// counted by key at the end, and by every keyed operator on the way. It must not
// know the cluster that runs it.
//
// A caller gives parameters to the job and to [Expected], runs it until a checkpoint
// was completed after the last record, and compares that with [ReadState]. A checkpoint
// with nothing in flight must have [ExpectedAt] its sources' positions. The graph
// depends on the parameter seed alone, its parallelism on widths. With once, the answer is the
// same at every parallelism, so that a job may be restored with other widths.
//
// What an operator does to a record depends on the record alone ([Node.apply]), so
// that the answer does not depend on any order; and the job and the answer use the same
// function, since it is the edges that are tried, not the operators.
//
// No goroutines, no locks. Read plan.go, then job.go.
package randomjob
