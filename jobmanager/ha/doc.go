// Package ha is the JobManager's seam to etcd: who leads, which jobs exist, and
// writes that only the leader can make.
//
// It owns [Registry], a revisioned key-value store with one election, and on top
// of it [JobStore]: the list of jobs, their status, the counter of checkpoint ids
// and the chain of completed checkpoints of each. It must not know what is in a
// job or a checkpoint; bodies are blobs, and only their names are kept here.
//
// A JobManager calls [Registry.Campaign] and, while it leads, makes a [JobStore]
// of its [Leadership]. When [Leadership.Lost] is closed it stops at once; nothing
// rests on how fast it does, since every write is guarded. Who does not lead asks
// [Registry.Leader] for the address of who does.
//
// # Invariants
//
//  1. A leader's epoch is the create revision of the election key. Every write
//     carries an epoch and is refused, with [ErrNotLeader], unless the key still
//     has that create revision. An epoch that was refused once is refused for ever.
//  2. Every key that a transaction writes or checks states the revision it is
//     expected to have; see [Op]. A transaction whose answer was lost can therefore
//     be sent again: it is applied at most once.
//  3. A write ends in one of four ways: applied; [ErrNotLeader]; [*ConflictError];
//     or unknown, [ErrDoubtful]. An unknown end is never taken for a refusal:
//     [Settle] asks until it is known (DECISIONS 8).
//  4. Link n+1 of a chain is put only if link n is the newest and n+1 is absent;
//     the newest link is never removed while its job lives.
//  5. A checkpoint id is handed out once, whoever leads; ids may be left out.
//
// # Implementations
//
// [Memory] here, for tests, simulation and a cluster in one process; ha/etcd for
// the rest, wired by daemon alone. Both pass hatest. A Registry may be used by any
// goroutine. Memory starts none; its lock, Memory.mu, is a leaf.
//
// Read registry.go, txn.go, settle.go, then job_store.go and chain.go. The keys
// are described in docs/formats.md, "Keys in etcd".
package ha
