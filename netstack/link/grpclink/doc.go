// Package grpclink carries frames between TaskManagers over gRPC: one
// bidirectional stream on a connection of its own per [link.Conn].
//
// It owns the stream's set-up and the codec that hands gRPC our bytes as they
// are, without protobuf: what is sent is referred to and not copied, what arrives
// is handed on in the pieces gRPC received it in (limits of the transport: 2 MiB
// windows both ways, no compression, default buffer sizes). It must not know what
// is in a frame.
//
// Invariants, beside those of package link:
//
//  1. The head is copied, the payload's reference is moved to gRPC and released
//     when gRPC has written it or given it up.
//  2. A client stream is used only after the server's header came, so that gRPC
//     keeps no copy for retries.
//  3. A frame larger than link.MaxFrame is refused before it is read.
//
// Goroutines: one per listener, in the group given; the handlers of accepted
// connections run on gRPC's. No locks. Read conn.go, then codec.go.
package grpclink
