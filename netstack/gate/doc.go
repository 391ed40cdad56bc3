// Package gate is a task's input: channels that bring segments and events, and the
// order in which the task takes them.
//
// It owns [InputGate]: the ready queue, the buffers and credit of its remote
// channels, blocking and resuming. It must not know alignment, elements or
// connections (a remote channel talks to its producer through [Remote]).
//
// The task polls: [InputGate.Poll] never waits, and when it finds nothing the gate's
// wake function is called once there is something. After an event that blocks, the
// channel brings nothing until [InputGate.Resume]; after the last event the task
// calls [InputGate.End]. While it does not want data it calls [InputGate.PollPriority].
// When a barrier overtook, [InputGate.CaptureQueued] has what it left behind here.
//
// # Invariants
//
//  1. Elements of one channel come in order; channels take turns, one item each;
//     priority items come first: what overtook, was moved by ToHead, or announces a
//     barrier. Each calls the task, whether it waits or not.
//  2. A channel that is blocked brings nothing of behind its barrier, and stops no other.
//     What a barrier was moved past on this side is polled, so that it holds no buffer of
//     the gate until the others' barriers are in.
//  3. Credit that was granted is covered by a buffer that is held (credit.Grants), except
//     that a channel without exclusive buffers gives them up when its producer stops.
//  4. Sequence numbers of a remote channel are consecutive, or the channel fails.
//  5. A failed channel fails the gate's Poll, with [PartitionLost].
//  6. After Close nothing is delivered and every buffer goes back to the pool.
//
// No goroutines. Locks: InputGate.mu before the pool's; it is never held while a
// callback runs. Read input_gate.go, then remote.go and capture.go.
package gate
