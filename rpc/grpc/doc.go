// Package grpc carries the conversations of package rpc over gRPC.
//
// It owns the translation between rpc's values and the generated messages, the
// stream of a session with its bounded queue, and the mapping of errors to gRPC
// statuses ([StatusOf], [ErrorOf]). It must not know what the messages mean.
//
// A JobManager makes a [Server] and registers it on a gRPC server; a TaskManager
// makes a [Dialer]; a client makes a [Client]. Connections take their transport
// credentials as a parameter.
//
// Invariants:
//
//  1. A session delivers messages in order, and Closed once, last.
//  2. Send never waits; a queue of more than [MaxQueued] messages ends the session.
//  3. What arrives is checked here: ids have 16 bytes, enumerations are known,
//     counts fit; a bad message ends its session with an error that names it.
//
// Goroutines: one writer per session (and one reader on the dialling side); the
// accepting side reads on gRPC's own goroutine. session.mu is a leaf. Read
// session.go first.
package grpc
