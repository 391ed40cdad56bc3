// Package netstack assembles the data path of a TaskManager: the outputs and inputs
// of its tasks, and the connections to other TaskManagers.
//
// It owns [Stack]: the segments of the process, who may read which partition, one
// connection per peer. It must not know operators, jobs or the meaning of a barrier.
//
// A process makes one Stack with [New] and starts it. For every deployed attempt it
// calls [Stack.OpenTask], which sets buffers aside or refuses; [TaskIO.Start] opens
// the channels; the task then uses [partition.ResultPartition] and [gate.InputGate].
// [TaskIO.Cancel] lets nothing wait any more, [TaskIO.Close] gives everything back,
// except a partition that ended and is still being read: it lives in the Stack until
// its consumers have it all, or [Stack.ReleaseJob].
//
// # Invariants
//
//  1. One connection per pair of processes carries both directions; the one with the
//     smaller TaskManagerID dials when a deployment names the other (DECISIONS 18).
//     A second stream of the same incarnation closes the first.
//  2. A channel is opened by producer attempt, consumer attempt and leader epoch;
//     whoever is older than what is here is refused.
//  3. A connection that ends fails its channels: consumers get
//     [gate.PartitionLost] with the producing attempt, producers release the
//     subpartition and go on.
//  4. The reader of a connection never waits for anything but its socket, so a
//     blocked channel stops no other on the same connection.
//  5. After Close of all tasks, and of the partitions that outlive them, every
//     buffer is back in the pool.
//
// # Goroutines
//
//   - link/accept, 1: takes connections.
//   - link/reader, 1 a connection: says Hello (and dials, if it is ours to), then
//     brings frames to channels; alone it writes received buffers.
//   - link/writer, 1 a connection: control frames first, then round robin among the
//     channels with data and credit or an event at the head; alone it takes from
//     subpartitions that are read remotely.
//   - flush, 1: asks partitions to publish when their buffer timeout has passed.
//
// # Locks
//
// From left to right, a lock on the left may be held while one on the right is taken:
//
//	Stack.mu → connection.mu
//	Stack.mu → group.Group.mu
//	gate.InputGate.mu → partition.Subpartition.mu
//	gate.InputGate.mu → buffer.LocalPool.mu → buffer.NetworkPool.mu
//	link's locks are leaves
//
// No lock is held over a send, a wait, I/O or a callback: listeners are called after
// unlocking.
//
// Read stack.go, then task.go, connection.go.
package netstack
