// Package gc finds what no job needs in a checkpoint directory, and deletes it: what
// crashes, doubtful answers and stores that refused to delete have left behind
// (DECISIONS 8, 9).
//
// It owns the question what is an orphan. It must not know what is in use: that is said
// by a cluster's leader ([rpc.InUse]), and without it nothing is an orphan.
//
// A caller goes, in this order, for the order is what makes it safe beside a running
// cluster:
//
//	found, err := gc.List(ctx, store)            what is there
//	use := …InUse(ctx)                           what is needed, asked after
//	report, err := gc.Sort(ctx, store, found, use, options)
//	use = …InUse(ctx); report.Spare(use)         again, just before
//	report.Delete(ctx, store)
//
// # Invariants
//
//  1. Only what was listed before the question is ever an orphan. Ids of checkpoints and
//     names of files are not used twice, so what is needed by nobody then never will be.
//  2. Of a job that the cluster has no record of nothing is an orphan: it may be
//     another cluster's, or a forgotten one whose checkpoints were kept.
//  3. If it cannot be told what a job needs, because a _metadata cannot be read or is
//     not there, nothing of that job is an orphan.
//  4. What somebody has claimed is not an orphan; nor is a savepoint that is whole.
//  5. Of a snapshot _metadata is deleted last, so that a deletion can be repeated.
//
// No goroutines, no locks. Read orphans.go.
package gc
