// Package store makes what the checkpoint coordinator decides durable: _metadata
// files in the checkpoint store, the chain of completed checkpoints and the counter
// of their ids in the registry, and the deletion of what nobody needs any more.
//
// It must not decide anything: which checkpoint is complete, retained or subsumed
// is said by jobmanager/checkpointing. It is the only maker of a [CommitPermit],
// which says that a checkpoint is a link of the chain and may be notified.
//
// For each job the JobMaster makes a [MetadataStore], a [CheckpointIDCounter], a
// [Chain] with [OpenChain] when it starts the job, and a [Cleaner]. A checkpoint goes
// [CheckpointIDCounter.Next], …, [MetadataStore.Write], [Chain.Add]; what it subsumes
// goes [Chain.Remove], [Cleaner.Discard], or [Cleaner.DiscardAt] if it lies elsewhere: a
// snapshot that the job has taken over with [TakeClaim], and that is a link since.
//
// # Invariants
//
//  1. A permit exists only for a checkpoint whose link is in the chain, put by this
//     leader or found there.
//  2. A link names a _metadata file that was read back and compared after writing.
//  3. A file is deleted only if no link of the chain names it; if that cannot be
//     told, because a retained _metadata cannot be read, nothing is deleted.
//  4. The newest link is not removed.
//  5. Doubtful answers are asked about until known; only the end of ctx makes a call
//     return [ha.ErrDoubtful]. For Write and Add that means: call again, with the same
//     arguments.
//  6. A snapshot is claimed by one cluster at a time, and its claim is deleted last.
//
// No goroutines of its own: calls block and belong on the I/O pools. Chain and
// Cleaner may be used by several at once; Chain.mu is a leaf. Read metadata.go, then
// chain.go, cleaner.go and claim.go.
package store
