// Package rpc is the control plane as Go values and interfaces: what
// TaskManagers and the JobManager, and clients and the JobManager, say to each
// other.
//
// It owns the messages and the two conversations, [Session] and
// [ClientGateway]. It must not know how bytes travel (rpc/grpc, rpc/local) nor
// anything of the engines behind it.
//
// A TaskManager dials the JobManager with [Dialer.Dial] and gets a [Session]; its
// first message is [Register]. From then on both sides send messages without
// waiting for answers; a message is delivered at most once and in the order sent,
// and when the session breaks, everything not yet delivered is lost and both
// sides learn of it once.
//
// Invariants:
//
//  1. Every message after registration that acts on a task names its attempt, and
//     the attempt names job and leader epoch; receivers refuse old ones.
//  2. Send never blocks on the network; a peer that does not read is cut off when
//     its bounded queue is full.
//  3. Lengths and counts are bounded before memory is taken.
//
// No goroutines here. Read session.go, deployment.go, then client.go.
package rpc
